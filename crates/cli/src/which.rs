//! The session that a command line selects.

use anyhow::Result;
use clap::Args;
use helix_agents::store::Head;

use crate::place::Place;

/// The command line arguments that select a session.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The session, as `helix sessions list` shows it.
    session: Option<String>,
    /// Use the newest root session.
    #[arg(long)]
    last: bool,
}

impl Which {
    /// Loads the head of the session.
    pub(crate) async fn head(&self, place: &Place) -> Result<Head> {
        match &self.session {
            Some(session) => place.head(session).await,
            None => place.newest().await,
        }
    }
}
