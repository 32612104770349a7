-- A pause, how long ago the last whole audit ended or the attaching was, and the newest sign that the server lost commits which no whole reindex or audit of the content has answered since. A restart alone is no such sign.
select (select extract(epoch from now() - p.since)::float8 from catchword.pause p where p.collection = $1) as paused_seconds,
       (select format('by %s: %s', p.by, p.reason) from catchword.pause p where p.collection = $1) as paused_why,
       (select extract(epoch from now() - greatest(c.attached_at, (select max(a.finished_at) from catchword.audit a where a.collection = $1 and a.whole)))::float8
          from catchword.collection c where c.name = $1) as unaudited_seconds,
       extract(epoch from now() - switched.at)::float8 as switched_seconds, switched.detail as switched_how
  from (values (1)) as one (row)
  left join lateral (
    select j.at, j.detail
      from catchword.journal j
     where j.what = 'raise' and (j.detail like 'another server%' or j.detail like 'the sequence went back%')
       and j.at > now() - interval '30 days'
       and not exists (select from catchword.reindex r
                        where r.collection = $1 and r.anew and r.scope is null and r.keys is null and r.period_from is null
                          and r.finished_at is not null and r.started_at > j.at)
       and not exists (select from catchword.audit a
                        where a.collection = $1 and a.whole and a.repair and a.content and a.finished_at is not null and a.asked_at >= j.at)
     order by j.id desc
     limit 1
  ) as switched on true
