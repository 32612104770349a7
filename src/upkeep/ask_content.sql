select catchword.ask_audit($1, true, 'other content')
