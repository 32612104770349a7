-- Remembers what the indices acknowledged, and asks for an audit of each collection one of whose indices lost something: both or neither.
with seen as (
  select s.collection, s.target, s.uuid, s.revision, s.lost, s.documents
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::integer[]) as s (collection, target, uuid, revision, lost, documents)
    join catchword.collection c on c.name = s.collection
),
renewed as (
  insert into catchword.sentinel as s (collection, target, index_uuid, revision, documents, lost_at, lost)
  select collection, target, uuid, revision, documents, case when lost is not null then now() end, lost from seen order by collection, target
  on conflict (collection, target) do update
     set index_uuid = excluded.index_uuid, renewed_at = now(),
         tried = array(select t from unnest(s.tried) as t where t >= excluded.revision),
         revision = case when excluded.lost is null then greatest(s.revision, excluded.revision) else excluded.revision end,
         documents = case when excluded.lost is null and s.revision > excluded.revision then s.documents else excluded.documents end,
         -- asked twice, because the first answer was lost, it is one loss
         lost_at = case when (excluded.lost, excluded.revision, excluded.index_uuid) = (s.lost, s.revision, s.index_uuid) then s.lost_at
                        else coalesce(excluded.lost_at, s.lost_at) end,
         lost = coalesce(excluded.lost, s.lost)
)
select catchword.ask_audit(l.collection, false, 'lost writes') from (select distinct collection from seen where lost is not null) as l
