use std::fs;
use std::path::PathBuf;

use super::error::{Error, Fault};

/// Looks variables up; an empty one counts as missing, as shells and compose files leave them behind.
pub(super) struct Variables<G>(pub G);

impl<G: Fn(&str) -> Option<String>> Variables<G> {
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The variable's value, or the content of the file that its twin `…_FILE` names. Neither value is ever printed,
    /// nor is the path: somebody will put the secret itself there.
    pub fn secret(&self, name: &str) -> Result<Option<String>, Error> {
        let twin = format!("{name}_FILE");
        match (self.get(name), self.path(&twin)) {
            (None, None) => Ok(None),
            (Some(value), None) => Ok(Some(value)),
            (None, Some(path)) => match fs::read_to_string(path) {
                Ok(content) => match content.trim_end_matches(['\r', '\n']) {
                    "" => Err(Fault::new("names an empty file", "write the value into it").of_variable(&twin)),
                    value => Ok(Some(value.to_owned())),
                },
                Err(cause) => Err(Fault::new(
                    format!("names a file that cannot be read: {cause}"),
                    format!("give the path of a readable file that holds what {name} would"),
                )
                .of_variable(&twin)),
            },
            (Some(_), Some(_)) => Err(Fault::new(format!("is set, and so is {twin}"), "unset one of them").of_variable(name)),
        }
    }

    pub fn required_secret(&self, name: &str, example: &str) -> Result<String, Error> {
        self.secret(name)?.ok_or_else(|| {
            let remedy = format!("for instance {name}={example}, or {name}_FILE with the path of a file that holds it");
            Fault::new("is not set", remedy).of_variable(name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::{Scratch, lookup};
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables<impl Fn(&str) -> Option<String> + use<>> {
        Variables(lookup(pairs))
    }

    #[test]
    fn an_empty_variable_is_missing() {
        let both = variables(&[("A", ""), ("A_FILE", "")]);
        assert_eq!(both.secret("A").unwrap(), None);
        let text = both.required_secret("A", "example").unwrap_err().to_string();
        assert_eq!(text, "A is not set; for instance A=example, or A_FILE with the path of a file that holds it");
    }

    #[test]
    fn a_secret_may_be_in_a_file_and_loses_its_line_end() {
        let scratch = Scratch::new();
        for (content, value) in [("x", "x"), ("x\n", "x"), ("x\r\n", "x"), (" x \n\n", " x ")] {
            let path = scratch.file("secret", content);
            let file = variables(&[("A_FILE", path.to_str().unwrap())]);
            assert_eq!(file.secret("A").unwrap().as_deref(), Some(value));
        }
    }

    #[test]
    fn an_empty_file_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.file("secret", "\n");
        let error = variables(&[("A_FILE", path.to_str().unwrap())]).secret("A").unwrap_err();
        assert_eq!(error.to_string(), "A_FILE names an empty file; write the value into it");
    }

    #[test]
    fn a_secret_in_place_of_its_path_is_not_printed() {
        let error = variables(&[("A_FILE", "hunter2")]).secret("A").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        assert!(error.to_string().starts_with("A_FILE names a file that cannot be read"));
    }

    #[test]
    fn both_ways_at_once_are_refused() {
        let error = variables(&[("A", "x"), ("A_FILE", "y")]).secret("A").unwrap_err();
        assert_eq!(error.to_string(), "A is set, and so is A_FILE; unset one of them");
    }
}
