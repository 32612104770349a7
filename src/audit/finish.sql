update catchword.audit set finished_at = now(), seen_at = now() where id = $1 returning finished_at
