//! What keeps catchword from talking to Elasticsearch: what is wrong and the remedy, apart, and one sentence of both.

use std::fmt;
use std::path::PathBuf;

use uuid::Uuid;

use super::Answer;

/// What keeps catchword from talking to Elasticsearch, or from using an index.
///
/// No text of it holds a credential: addresses lose their user-info before anything can print them.
#[derive(Debug)]
pub enum Error {
    /// The address or its credentials cannot be used.
    Address(String),

    /// The file of the certificate authority cannot be read, or is none.
    CaFile {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// The client's certificate or its key cannot be used.
    ClientCertificate {
        /// Where it was looked for.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// The HTTP client could not be made.
    Client(String),

    /// Elasticsearch did not do what it was asked; the answer says whether that was refused or is unknown.
    Request {
        /// What was asked, as it reads after "could not".
        doing: String,
        /// What came back.
        answer: Answer,
    },

    /// The collection's file of settings and mappings cannot be used as it is.
    Mapping {
        /// Whose file it is.
        collection: String,
        /// What is wrong, and what to write instead.
        problem: String,
    },

    /// A name is needed for an alias, and an index has it.
    NameTaken {
        /// The name.
        name: String,
    },

    /// The index was not made by catchword.
    NotOurs {
        /// The index.
        index: String,
        /// Who asked.
        ours: Uuid,
    },

    /// The index belongs to another database's catchword (staging pointed at production).
    OtherInstallation {
        /// The index.
        index: String,
        /// Whose it is.
        theirs: String,
        /// Who asked.
        ours: Uuid,
    },

    /// The index belongs to another collection of this installation.
    OtherCollection {
        /// The index.
        index: String,
        /// Whose it is.
        theirs: String,
        /// Who asked.
        ours: String,
    },

    /// The index is not there.
    NoIndex {
        /// The index.
        index: String,
    },

    /// An alias is not there.
    NoAlias {
        /// The alias.
        alias: String,
        /// The index it should lead to.
        index: String,
    },

    /// Readers see an index that nobody keeps in step.
    AliasElsewhere {
        /// The alias.
        alias: String,
        /// Where it leads.
        index: String,
        /// Where it should lead.
        kept: String,
    },

    /// An alias leads to more than the one index it should lead to.
    AliasOfMany {
        /// The alias.
        alias: String,
        /// Where it leads, separated by commas.
        indices: String,
    },

    /// The readers' alias shows tombstones.
    NoFilter {
        /// The alias.
        alias: String,
        /// The index.
        index: String,
    },

    /// The name of a search alias is somebody else's.
    SearchAliasTaken {
        /// The alias.
        alias: String,
        /// Whose it is, as it reads after "cannot be a search alias: ".
        problem: String,
    },

    /// Readers who search several collections miss one.
    NoSearchAlias {
        /// The alias.
        alias: String,
        /// The index that should be found under it.
        index: String,
    },

    /// Readers who search several collections see an index of one that it is not read by.
    SearchAliasElsewhere {
        /// The alias.
        alias: String,
        /// What they see.
        index: String,
        /// What they should see.
        kept: String,
    },

    /// An index has the name that a rebuild chose, and another made it.
    LeftOver {
        /// The index.
        index: String,
    },

    /// An index that is to be dropped is the one that readers see.
    StillRead {
        /// The index.
        index: String,
        /// The alias.
        alias: String,
    },

    /// A name that means several indices was given where one is meant.
    NotOneIndex {
        /// What was given.
        name: String,
    },
}

impl Error {
    /// What is wrong, without the remedy.
    pub fn what(&self) -> String {
        match self {
            Error::Address(problem) => problem.clone(),
            Error::ClientCertificate { path, problem } => format!("the client certificate {} cannot be used: {problem}", path.display()),
            Error::CaFile { path, problem } => format!("the CA file {} cannot be used: {problem}", path.display()),
            Error::Client(problem) => format!("no client for elasticsearch could be made: {problem}"),
            Error::Request { doing, answer } => format!("could not {doing}: {answer}"),
            Error::Mapping { collection, problem } => format!("the mapping of collection {collection}: {problem}"),
            Error::NameTaken { name } => format!("{name} is an index, and catchword needs that name for an alias"),
            Error::NotOurs { index, .. } => format!("index {index} does not carry catchword's mark"),
            Error::OtherInstallation { index, theirs, ours } => {
                format!("index {index} belongs to installation {theirs}, and this database is {ours}")
            }
            Error::OtherCollection { index, theirs, ours } => format!("index {index} belongs to collection {theirs}, not to {ours}"),
            Error::NoIndex { index } => format!("there is no index {index}, or these credentials may not see it"),
            Error::NoAlias { alias, index } => format!("there is no alias {alias} for index {index}, or it takes no writes"),
            Error::AliasElsewhere { alias, index, kept } => {
                format!("the alias {alias} leads to {index}, and the collection is kept in {kept}")
            }
            Error::AliasOfMany { alias, indices } => format!("the alias {alias} leads to {indices}, and must lead to one index"),
            Error::NoFilter { alias, index } => {
                format!("the alias {alias} shows deleted documents, its filter is missing on index {index}")
            }
            Error::SearchAliasTaken { alias, problem } => format!("{alias} cannot be a search alias: {problem}"),
            Error::NoSearchAlias { alias, index } => format!("index {index} is not found under the search alias {alias}"),
            Error::SearchAliasElsewhere { alias, index, kept } => {
                format!("the search alias {alias} leads to {index}, and the collection is read from {kept}")
            }
            Error::LeftOver { index } => format!("index {index} is there, and this rebuild did not make it"),
            Error::StillRead { index, alias } => {
                format!("index {index} is not dropped: readers see it through the alias {alias}, which somebody moved")
            }
            Error::NotOneIndex { name } => format!("{name} is not the name of one index"),
        }
    }

    /// What to do about it; none: the answer, or the problem, says all there is.
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Error::Address(_) | Error::Client(_) | Error::Request { .. } | Error::Mapping { .. } => return None,
            Error::CaFile { .. } => "it must hold PEM certificates".into(),
            Error::ClientCertificate { .. } => "the certificate and its key are PEM files; the key is not encrypted".into(),
            Error::NameTaken { .. } => "if it came later, remove it and run `catchword migrate`; \
                if your readers use it, give the collection another `index` before its first `catchword migrate`, \
                fill it with `catchword reindex --all`, then move your readers"
                .into(),
            Error::NotOurs { index, ours } => format!(
                "if catchword did not make it, give the collection another `index`, fill it with `catchword reindex --all`, \
                 then move your readers; if somebody overwrote the mark, put it back: \
                 PUT {index}/_mapping {{\"_meta\": {{\"catchword\": {{\"installation\": \"{ours}\", \"collection\": \"…\"}}}}}}"
            ),
            Error::OtherInstallation { .. } => "check ELASTICSEARCH_URL and DATABASE_URL, or set CATCHWORD_INDEX_PREFIX".into(),
            Error::OtherCollection { .. } => "give each collection its own `index`".into(),
            Error::NoIndex { .. } => "run `catchword migrate`, then `catchword reindex --all`".into(),
            Error::SearchAliasTaken { .. } => {
                "write another `search_alias`; or, if nobody needs what has that name, remove it and run `catchword migrate`".into()
            }
            Error::NoAlias { .. } | Error::NoFilter { .. } | Error::NoSearchAlias { .. } | Error::SearchAliasElsewhere { .. } => {
                "run `catchword migrate`".into()
            }
            Error::AliasElsewhere { kept, .. } => format!(
                "run `catchword migrate`, which moves it back; if {kept} is gone for good, run `catchword detach`, then `catchword migrate`"
            ),
            Error::AliasOfMany { .. } => "remove it from the others".into(),
            Error::LeftOver { .. } => "if nobody needs it, delete it, then repeat this".into(),
            Error::StillRead { .. } => "move it back first".into(),
            Error::NotOneIndex { .. } => "write it out".into(),
        };
        Some(remedy)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl std::error::Error for Error {}
