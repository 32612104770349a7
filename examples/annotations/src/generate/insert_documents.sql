-- A page that is there is left alone: an update, even of nothing, would touch all its annotations.
insert into document (web_uri, title)
select page.web_uri, page.title
from unnest($1::text[], $2::text[]) as page (web_uri, title)
order by page.web_uri
on conflict (web_uri) do nothing
