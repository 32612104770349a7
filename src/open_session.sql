-- The caller's own statements run here: under the path that the role has by itself.
reset search_path
