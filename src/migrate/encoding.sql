select current_setting('server_encoding')
