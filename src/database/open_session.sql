-- The caller's own statements run here: under the role's own path.
reset search_path
