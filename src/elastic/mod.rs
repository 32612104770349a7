//! The only code that speaks HTTP to Elasticsearch.
//!
//! In the order the data travels: [`look`] asks which versions are there, [`bulk`] writes
//! documents under their versions, [`answer`] says what an answer means, [`index`] makes the index and its two aliases.
//! Everything that decides is a pure function of bytes; what is left does nothing but send and wait.

pub mod address;
pub mod answer;
pub mod bulk;
pub mod index;
pub mod look;
pub mod point_in_time;
pub mod sources;
pub mod sweep;

mod ask;
mod chunks;
mod client;
mod fault;
mod percent;
mod redact;
mod survey;
mod target;

use std::path::PathBuf;

use uuid::Uuid;

pub use address::{Address, Credentials, Transport};
pub use answer::Answer;
pub use bulk::{Body, MAX_DOCUMENT_BYTES, Refresh, Write};
pub use client::Elastic;
pub use index::{Difference, Done, Ensured, IndexPlan, Room};
pub use look::Has;
pub use point_in_time::{PAGE, Page};
pub(crate) use redact::redact;
pub use sources::Stored;
pub use survey::{Actual, Cluster};
pub use target::Target;

/// What keeps catchword from talking to Elasticsearch, or from using an index.
///
/// No text of it holds a credential: addresses lose their user-info before anything can print them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address or its credentials cannot be used.
    #[error("{0}")]
    Address(String),

    /// The file of the certificate authority cannot be read, or is none.
    #[error("the CA file {} cannot be used: {problem}; it must hold PEM certificates", path.display())]
    CaFile {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// The HTTP client could not be made.
    #[error("no client for elasticsearch could be made: {0}")]
    Client(String),

    /// Elasticsearch did not do what it was asked; the answer says whether that was refused or is unknown.
    #[error("could not {doing}: {answer}")]
    Request {
        /// What was asked, as it reads after "could not".
        doing: String,
        /// What came back.
        answer: Answer,
    },

    /// The collection's file of settings and mappings cannot be used as it is.
    #[error("the mapping of collection {collection}: {problem}")]
    Mapping {
        /// Whose file it is.
        collection: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },

    /// A name is needed for an alias, and an index has it.
    #[error(
        "{name} is an index, and catchword needs that name for an alias: if it came later, remove it and run `catchword migrate`; if your readers use it, give the collection another `index` before its first `catchword migrate`, fill it with `catchword reindex --all`, then move your readers"
    )]
    NameTaken {
        /// The name.
        name: String,
    },

    /// The index was not made by catchword.
    #[error(
        "index {index} does not carry catchword's mark: if catchword did not make it, give the collection another `index`, fill it with `catchword reindex --all`, then move your readers; if somebody overwrote the mark, put it back: PUT {index}/_mapping {{\"_meta\": {{\"catchword\": {{\"installation\": \"{ours}\", \"collection\": \"…\"}}}}}}"
    )]
    NotOurs {
        /// The index.
        index: String,
        /// Who asked.
        ours: Uuid,
    },

    /// The index belongs to another database's catchword (staging pointed at production).
    #[error(
        "index {index} belongs to installation {theirs}, and this database is {ours}: check ELASTICSEARCH_URL and DATABASE_URL, or set CATCHWORD_INDEX_PREFIX"
    )]
    OtherInstallation {
        /// The index.
        index: String,
        /// Whose it is.
        theirs: String,
        /// Who asked.
        ours: Uuid,
    },

    /// The index belongs to another collection of this installation.
    #[error("index {index} belongs to collection {theirs}, not to {ours}: give each collection its own `index`")]
    OtherCollection {
        /// The index.
        index: String,
        /// Whose it is.
        theirs: String,
        /// Who asked.
        ours: String,
    },

    /// The index is not there.
    #[error("there is no index {index}, or these credentials may not see it: run `catchword migrate`, then `catchword reindex --all`")]
    NoIndex {
        /// The index.
        index: String,
    },

    /// An alias is not there.
    #[error("there is no alias {alias} for index {index}, or it takes no writes: run `catchword migrate`")]
    NoAlias {
        /// The alias.
        alias: String,
        /// The index it should lead to.
        index: String,
    },

    /// Readers see an index that nobody keeps in step.
    #[error(
        "the alias {alias} leads to {index}, and the collection is kept in {kept}: run `catchword migrate`, which moves it back; if {kept} is gone for good, run `catchword detach`, then `catchword migrate`"
    )]
    AliasElsewhere {
        /// The alias.
        alias: String,
        /// Where it leads.
        index: String,
        /// Where it should lead.
        kept: String,
    },

    /// An alias leads to more than the one index it should lead to.
    #[error("the alias {alias} leads to {indices}, and must lead to one index: remove it from the others")]
    AliasOfMany {
        /// The alias.
        alias: String,
        /// Where it leads, separated by commas.
        indices: String,
    },

    /// The readers' alias shows tombstones.
    #[error("the alias {alias} shows deleted documents, its filter is missing on index {index}: run `catchword migrate`")]
    NoFilter {
        /// The alias.
        alias: String,
        /// The index.
        index: String,
    },

    /// An index has the name that a rebuild chose, and another made it.
    #[error("index {index} is there, and this rebuild did not make it: delete it if nobody needs it, then repeat this")]
    LeftOver {
        /// The index.
        index: String,
    },

    /// An index that is to be dropped is the one that readers see.
    #[error("index {index} is not dropped: readers see it through the alias {alias}, which somebody moved; move it back first")]
    StillRead {
        /// The index.
        index: String,
        /// The alias.
        alias: String,
    },

    /// A name that means several indices was given where one is meant.
    #[error("{name} is not the name of one index: write it out")]
    NotOneIndex {
        /// What was given.
        name: String,
    },
}
