-- What every script takes, and its default.
\if :{?collection}
\else
  \set collection annotation
\endif
\if :{?rewrite}
\else
  \set rewrite false
\endif
\if :{?hidden}
\else
  \set hidden false
\endif
-- rewrite=true for everything locks the table for a moment; a lock that takes over 2 s is given up, so that traffic does not wait: then run it again
set lock_timeout = '2s';
