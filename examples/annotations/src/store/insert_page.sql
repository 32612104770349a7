-- No `do update`: an update, even of nothing, would touch all the page's annotations.
insert into document (web_uri, title)
values ($1, $2)
on conflict (web_uri) do nothing
returning id
