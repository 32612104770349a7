select catchword.bring_back($1)
