use elasticsearch::http::Method;

use crate::elastic::{Elastic, Error, percent};

impl Elastic {
    /// Deletes an index with everything in it; one that is not there is no error.
    pub async fn drop_index(&self, index: &str) -> Result<(), Error> {
        // a name that means many would delete many
        if index.is_empty() || index.starts_with(['_', '-', '.']) || index.contains(['*', '?', ',', '<']) {
            return Err(Error::NotOneIndex { name: index.to_owned() });
        }
        let path = format!("/{}", percent::encode(index));
        self.ask(
            &format!("drop index {index}"),
            Method::Delete,
            &path,
            &[("ignore_unavailable", "true")],
            None,
        )
        .await?;
        Ok(())
    }
}
