use crate::elastic::client::Method;

use crate::elastic::{Answer, Elastic, Error, percent};

impl Elastic {
    /// Deletes an index with everything in it; one that is not there is no error.
    pub async fn drop_index(&self, index: &str) -> Result<(), Error> {
        // a name that means many would delete many
        if index.is_empty() || index.starts_with(['_', '-', '.']) || index.contains(['*', '?', ',', '<']) {
            return Err(Error::NotOneIndex { name: index.to_owned() });
        }
        let path = format!("/{}", percent::encode(index));
        match self.ask(&format!("drop index {index}"), Method::Delete, &path, &[], None).await {
            Err(Error::Request { answer: Answer::Blocked(why), .. }) if why.starts_with("index_not_found_exception") => Ok(()),
            answered => answered.map(|_| ()),
        }
    }
}
