use std::io;
use std::path::PathBuf;

/// Why a configuration or an environment was refused. Each text says where, what is wrong, and what to write instead;
/// none carries a secret, because no value of a secret is ever put into one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration file cannot be read.
    #[error("cannot read {}: {cause}; say where it is with --config or CATCHWORD_CONFIG", file.display())]
    Unreadable {
        /// The path that was tried.
        file: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The file is not TOML.
    #[error("{}:{line}: this is not TOML: {problem}", file.display())]
    NotToml {
        /// The configuration.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What the parser said.
        problem: String,
    },
    /// A key is unknown, missing, of the wrong type, or has a value that cannot be.
    #[error("{}:{line}: {key} {problem}; {remedy}", file.display())]
    Refused {
        /// The configuration.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The key with its section, as in `collection "annotation": scopes.user`.
        key: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        remedy: String,
    },
    /// The file of settings and mappings cannot be used.
    #[error("collection {collection:?}: mapping {} {problem}", mapping.display())]
    Mapping {
        /// The collection's name.
        collection: String,
        /// The path, resolved.
        mapping: PathBuf,
        /// What is wrong with it, and what it should hold.
        problem: String,
    },
    /// No collection has that name.
    #[error("there is no collection {name:?} in {}; name one of: {known}", file.display())]
    NoSuchCollection {
        /// The configuration.
        file: PathBuf,
        /// The name that was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// There are several collections, and none was named.
    #[error("there are several collections; name one of: {known}")]
    NameOne {
        /// The names there are.
        known: String,
    },
    /// A variable of the environment is missing or has a value that cannot be.
    #[error("{variable} {problem}; {remedy}")]
    Variable {
        /// Its name.
        variable: String,
        /// What is wrong with it.
        problem: String,
        /// What to set instead.
        remedy: String,
    },
}

/// What is wrong with one value, in words that follow the name of its key, and what to write instead. Rules return it;
/// whoever knows the place makes an [`Error`] of it.
#[derive(Debug)]
pub(super) struct Fault {
    pub problem: String,
    pub remedy: String,
}

impl Fault {
    pub fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Fault {
        Fault { problem: problem.into(), remedy: remedy.into() }
    }

    pub fn of_variable(self, variable: &str) -> Error {
        let Fault { problem, remedy } = self;
        Error::Variable { variable: variable.to_owned(), problem, remedy }
    }
}
