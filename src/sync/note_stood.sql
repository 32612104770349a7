-- Jobs of these collections were due and none moved, and why: told by `check` and `status` as if a worker had seen it.
insert into catchword.standstill (collection, why)
select stood.key, stood.value from pg_catalog.jsonb_each_text($1) as stood order by stood.key
on conflict (collection) do update set why = excluded.why where standstill.why is distinct from excluded.why
