select t.{key}::text as key from only {table} t limit 100
