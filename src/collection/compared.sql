-- Rows that the view returns for these keys: how many have no revision yet, and how many show another one than the row's.
select pg_catalog.count(*) as returned,
       pg_catalog.count(*) filter (where t.{revision} is null) as without_revision,
       pg_catalog.count(*) filter (where v.revision is distinct from t.{revision}) as other_revision
  from {view} v join {rows} t on {t_is_v}
 where {v_at $1}
