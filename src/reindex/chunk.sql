select catchword.reindex_chunk($1, $2)
