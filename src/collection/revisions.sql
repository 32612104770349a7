select v.revision as in_view, t.{revision} as in_row
  from {view} v join {rows} t on {t_is_v}
 where {v_is $1}
