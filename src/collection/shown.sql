select v.key::text as key from {view} v where v.key = any($1::text[]::{key_type}[]) limit 1
