use anyhow::Context;
use clap::Args;

use super::Security;

/// Create the service's tables and its view, or bring them up to date.
///
/// Safe to run again: it then changes nothing. Run `catchword migrate` afterwards, which attaches
/// the table `annotation` and creates the index.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    security: Security,
}

impl Migrate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let pool = self.security.database().await?;
        annotations::migrate(&pool).await.context("cannot migrate the annotation tables")?;
        println!("tables document and annotation and view annotation_document are up to date");
        println!("next: catchword migrate, which attaches them and creates the index");
        Ok(())
    }
}
