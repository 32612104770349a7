delete from catchword.worker where id = $1
