select catchword.schedule($1, $2, $3, p_delay => make_interval(secs => $4)) as scheduled, now() as since
