//! The files: which there are to be, and writing them. Nothing that is there is overwritten; the configuration is added to.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Draft, mapping, sql, toml};
use crate::Error;
use crate::config::Config;

/// The three texts, and where they belong.
#[derive(Clone, Debug, Serialize)]
pub struct Files {
    /// The column and the view.
    pub migration: Text,
    /// The mapping of the index.
    pub mapping: Text,
    /// The `[[collection]]`, to be added to the configuration.
    pub config: Text,
}

#[derive(Clone, Debug, Serialize)]
pub struct Text {
    pub path: PathBuf,
    pub text: String,
}

/// What became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrote {
    All,
    /// They are there already, just like this.
    Nothing,
}

impl Files {
    /// Beside the configuration, called by the collection's name.
    pub fn of(draft: &Draft, config: &Path) -> Files {
        let folder = config.parent().unwrap_or(Path::new(""));
        let name = |end: &str| format!("{}.{end}", draft.collection);
        let config_name = config.file_name().map_or_else(|| "catchword.toml".into(), |name| name.to_string_lossy());
        let of = |name: String, text: String| Text { path: folder.join(name), text };
        Files {
            migration: of(name("sql"), sql::text(draft, &name("json"), &config_name)),
            mapping: of(name("json"), mapping::text(draft)),
            config: Text { path: config.to_owned(), text: toml::text(draft, &name("json")) },
        }
    }

    /// Writes all of them, or none.
    pub fn write(&self) -> Result<Wrote, Error> {
        let before = match fs::read_to_string(&self.config.path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&self.config.path, "cannot be read", &error)),
        };
        if self.is_written(before.as_deref()) {
            return Ok(Wrote::Nothing);
        }
        for file in [&self.migration, &self.mapping] {
            if fs::symlink_metadata(&file.path).is_ok() {
                return Err(Error::refused_with(
                    format!("{} is there already, and nothing was written", file.path.display()),
                    "move it away, or choose another name for the collection with --name",
                ));
            }
        }
        let added = added(before.as_deref(), &self.config.text);
        // a second collection of the same name, a file that cannot be added to
        Config::parse(&format!("{}{added}", before.unwrap_or_default()), &self.config.path)?;
        create(&self.migration)?;
        let rest =
            create(&self.mapping).and_then(|()| append(&self.config.path, &added).inspect_err(|_| _ = fs::remove_file(&self.mapping.path)));
        rest.inspect_err(|_| _ = fs::remove_file(&self.migration.path))?;
        Ok(Wrote::All)
    }

    fn is_written(&self, config: Option<&str>) -> bool {
        let same = |file: &Text| fs::read_to_string(&file.path).is_ok_and(|text| text == file.text);
        same(&self.migration) && same(&self.mapping) && config.is_some_and(|text| text.contains(&self.config.text))
    }
}

/// What is put behind the configuration: an empty line between, and its last line ended.
fn added(before: Option<&str>, collection: &str) -> String {
    match before {
        None | Some("") => format!(
            "# What catchword keeps in step. Addresses and secrets come from the environment: DATABASE_URL, ELASTICSEARCH_URL, …\n\n{collection}"
        ),
        Some(text) => format!("{}\n{collection}", if text.ends_with('\n') { "" } else { "\n" }),
    }
}

fn create(file: &Text) -> Result<(), Error> {
    let opened = OpenOptions::new().write(true).create_new(true).open(&file.path);
    let written = opened.and_then(|mut open| open.write_all(file.text.as_bytes()).inspect_err(|_| _ = fs::remove_file(&file.path)));
    written.map_err(|error| failed(&file.path, "cannot be written", &error))
}

fn append(path: &Path, text: &str) -> Result<(), Error> {
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.and_then(|mut open| open.write_all(text.as_bytes())).map_err(|error| failed(path, "cannot be written", &error))
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::refused(format!("{} {what}: {error}", path.display()))
}
