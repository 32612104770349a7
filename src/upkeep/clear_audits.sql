select catchword.clear_audits()
