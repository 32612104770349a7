-- Refuses first what cannot be attached.
with said as (
  select case when $9::text is null then $1 else catchword.member_name($1, $9) end as name,
         catchword.named(catchword.in_schema($2, catchword.schemas_of($2), $9)) as source,
         catchword.touches_in($6, catchword.schemas_of($2), $9) as touches
),
checked as materialized (
  select said.*, catchword.check_source(name, source, $3, $4, $5, touches), catchword.check_fair_by(source, $8, $9) from said
)
select catchword.attach_statements(name, source, $3, $4, $5, touches, $7, p_schema => $9, p_fair_by => $8) from checked
