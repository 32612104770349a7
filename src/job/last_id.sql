-- The id that a job was last given, committed or not. A job that became due since then has a higher one. Read from the sequence, which is one page:
-- it costs the server hardly more than no question at all.
select last_value from catchword.job_id_seq
