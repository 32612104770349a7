-- What is known of one collection by its audits and sentinels: the last whole audit that came to its end, whether one runs, and whether an
-- index lost writes: since then, and until ten minutes after the audit that answered it.
select last.asked_at, last.finished_at, last.counts, last.scheduled,
       exists (select from catchword.audit a where a.collection = c.name and a.finished_at is null and a.stopped_at is null and a.seen_at > now() - interval '10 minutes' and a.looked > 0) as running,
       c.repaired + (select coalesce(sum(a.scheduled), 0)::bigint from catchword.audit a where a.collection = c.name) as repaired,
       (select s.lost from catchword.sentinel s
         where s.collection = c.name and s.target = any(c.targets) and s.lost_at is not null
           and not exists (select from catchword.audit a where a.collection = c.name and a.whole and a.repair and a.asked_at >= s.lost_at and a.finished_at is not null)
         order by s.lost_at desc limit 1) as lost,
       (select s.lost from catchword.sentinel s
         where s.collection = c.name and s.target = any(c.targets) and s.lost_at is not null
           and not exists (select from catchword.audit a
                            where a.collection = c.name and a.whole and a.repair and a.asked_at >= s.lost_at and a.finished_at < now() - interval '10 minutes')
         order by s.lost_at desc limit 1) as lost_lately,
       extract(epoch from now() - switched.at)::float8 as switched_seconds, switched.detail as switched_how
  from catchword.collection c
  left join lateral (select a.asked_at, a.finished_at, a.counts, a.scheduled from catchword.audit a
                      where a.collection = c.name and a.whole and a.finished_at is not null order by a.id desc limit 1) as last on true
  -- the newest sign that the server lost commits which no whole reindex or audit of the content has answered since; a restart alone is none
  left join lateral (
    select j.at, j.detail
      from catchword.journal j
     where j.what = 'raise' and (j.detail like 'another server%' or j.detail like 'the sequence went back%')
       and j.at > now() - interval '30 days'
       and not exists (select from catchword.reindex r
                        where r.collection = c.name and r.rewrite and r.scope is null and r.keys is null and r.period_from is null
                          and r.finished_at is not null and r.started_at > j.at)
       and not exists (select from catchword.audit a
                        where a.collection = c.name and a.whole and a.repair and a.content and a.finished_at is not null and a.asked_at >= j.at)
     order by j.id desc
     limit 1
  ) as switched on true
 where c.name = $1
