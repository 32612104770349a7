select catchword.raise_revision($1)
