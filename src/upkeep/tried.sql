-- Of these versions that an index has of its sentinels, the highest that this database never sent.
select max(v) from unnest($3::bigint[]) as v, catchword.sentinel s
 where s.collection = $1 and s.target = $2 and v > s.revision and v <> all (s.tried)
