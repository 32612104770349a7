select catchword.look_again($1, $2, $3) as scheduled, now() as since
