select id from catchword.installation
