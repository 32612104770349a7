-- What every script takes, and its default.
\if :{?collection}
\else
  \set collection annotation
\endif
\if :{?anew}
\else
  \set anew false
\endif
\if :{?hidden}
\else
  \set hidden false
\endif
-- everything anew locks the table for a moment: the lock gives way to traffic; then say it again
set lock_timeout = '2s';
