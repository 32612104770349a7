select {v_key} as key from {view} v where {v_at $1} limit 1
