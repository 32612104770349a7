//! The only code that knows views, keys and triggers: attaching a table, what Postgres wants of a key, the documents themselves.

mod attach;
mod bodies;
mod check;
mod copy;
mod doubled;
mod ids;
mod key;
mod keys;
mod load;
mod member;
mod now;
mod plan;
mod repair;
mod rows;
mod search_alias;
mod statements;
mod survey;
mod targets;
mod wants;
mod watched;
mod way_back;

pub use attach::{Attached, attach, attach_statements, attach_what_fits, detach, set_targets, try_attach};
pub use bodies::{Built, Document, ROUND_BYTES};
pub use check::{Judged, refuse_standby, standby};
pub use copy::{OfACopy, previous_installation, taken_over};
pub use ids::Ids;
pub use key::{Key, KeyPart, KeyType, MAX_KEY_BYTES, SENTINEL, no_id};
pub use keys::Keys;
pub(crate) use load::bind;
pub use load::{Found, installation, load, own_statement, problems, with_remedy};
pub(crate) use member::schema_in;
pub use now::Now;
pub use repair::{Expanded, draw, expand_touches, raise_revision, record_gone};
pub use rows::Unbuildable;
pub use search_alias::{search_alias, set_search_alias};
pub(crate) use statements::begin_saying;
pub use survey::{Highest, Survey};
pub use wants::Want;
pub use watched::Doubts;
pub use way_back::Lost;

use uuid::Uuid;

use crate::elastic::Target;
use member::Member;

/// A table, its view and its index, as they are attached; or one table in many schemas.
#[derive(Clone, Debug)]
pub struct Collection {
    /// What jobs, commands and metrics call it.
    pub name: String,
    /// The type of its key, which may be of several columns.
    pub key_type: KeyType,
    /// The alias that readers search.
    pub alias: String,
    /// The alias that its index was put under, so that readers search it together with other collections.
    pub search_alias: Option<String>,
    /// The indices that must all agree, the readers' first. One, until a rebuild makes it two.
    pub targets: Vec<Target>,
    /// The column that `reindex --between` reads.
    pub period: Option<String>,
    /// The largest share of a batch that one tenant's jobs may have while others have work; none: tenants are not told apart.
    pub fair: Option<f64>,
    /// Why it is paused, if it is.
    pub paused: Option<String>,
    /// What is wrong with what the promises rest on: triggers, columns, the view. Empty: nothing.
    pub problems: Vec<String>,
    /// Settings that the configuration has otherwise than it was attached with. Nothing is held up by it.
    pub unmigrated: Vec<String>,
    /// Has the definition of the view (or of a view or function below it) changed since every document was built?
    pub view_changed: bool,
    /// Is a rebuild of it not over yet?
    pub rebuilding: bool,
    /// Who we are. Every index of it carries this.
    pub installation: Uuid,
    /// Tables that the view reads, whose changes touch no row, and that nobody waived.
    pub unwatched: Vec<String>,
    /// Columns of its own table that the view reads and `watch` lacks.
    pub unwatched_columns: Vec<String>,
    /// Its table; or one for each schema, by their names.
    members: Vec<Member>,
}
