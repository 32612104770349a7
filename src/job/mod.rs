//! The only code that names `catchword.job` and `catchword.dead_job`.

mod bury;
mod by_hand;
mod census;
mod claim;
mod class;
mod dead;
mod estimate;
mod first_due;
mod keys_with_jobs;
mod letters;
mod of_key;
mod of_tag;
mod open_audit;
mod postpone;
mod push_back;
mod settle;
mod storage;
mod suspect;

pub use bury::{Burial, Reason, bury};
pub use by_hand::bury_by_hand;
pub use census::{CENSUS_LIMIT, Census, Letters, census, letters, unserved};
pub use claim::{Cursor, Job, LIVE, QUICK, claim, claim_until, live_is_due};
pub use class::Class;
pub use dead::{Group, Letter, Which, dead_groups, dead_letters, discard, replay};
pub use first_due::{FirstDue, dated_ahead, first_due};
pub use keys_with_jobs::{dead_among, open_among, schedule_audit, unindexable_alone};
pub use letters::{clear_letters, old_letters};
pub use of_key::{Dead, Open, dead_of_key, failing_touch, open_of_key, touch_is_open};
pub use of_tag::{OfTag, OpenOfTag, Place, of_tag, open_of_tag};
pub use open_audit::open_audit;
pub use postpone::postpone;
pub use push_back::{Charge, Due, MAX_ATTEMPTS, push_back};
pub use settle::{Fresh, settle};
pub use storage::{REPAIR_OPTIONS, Storage, options, storage};
pub use suspect::suspect;
