insert into catchword.sentinel as s (collection, target, index_uuid, revision, lost_at, lost)
values ($1, $2, $3, $4, case when $5::text is not null then now() end, $5)
on conflict (collection, target) do update
   set index_uuid = excluded.index_uuid, renewed_at = now(),
       revision = case when excluded.lost is null then greatest(s.revision, excluded.revision) else excluded.revision end,
       lost_at = coalesce(excluded.lost_at, s.lost_at), lost = coalesce(excluded.lost, s.lost)
