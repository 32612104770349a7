update document
set title = $2
where id = $1
  and title is null
