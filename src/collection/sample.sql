select {t_key} as key from {rows} t limit 100
