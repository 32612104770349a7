select v.key::text as key from {view} v limit 1
