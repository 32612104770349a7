-- The beginning of a tick, and then the collections: one row each, or one without a name if there are none or the server is a standby.
select t.standby, t.switched, t.due, t.quiet, t.standing_still, t.brought_back, a.*
  from catchword.tick($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as t
  left join lateral catchword.attached($12, $13, $14, $15) as a on not t.standby
