select key, id, taken_by from catchword.name_documents($1, $2, $3)
