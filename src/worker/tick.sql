-- The beginning of a tick, and then the collections: one row each, or one without a name if there are none or the server is a standby.
select t.standby, t.switched, t.due, t.quiet, t.standing_still, t.brought_back,
       exists (select from catchword.reindex r
                where r.ended_at is null and r.paused_at is null and r.collection = any($4)
                  and not exists (select from catchword.pause p where p.collection = r.collection)) as reindexing,
       a.*
  from catchword.tick($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) as t
  left join lateral catchword.attached($11, $12, $13, $14) as a on not t.standby
