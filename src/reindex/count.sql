select catchword.reindex_count($1)
