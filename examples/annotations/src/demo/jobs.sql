select count(*) from catchword.job
