select previous_id from catchword.installation
