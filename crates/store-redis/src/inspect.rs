//! Inspection of a server and of the store's data, without changing anything.

use serde::Serialize;

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;

use crate::config::Config;
use crate::connection::Server;
use crate::guarantees;
use crate::location::Location;
use crate::settings::{self, SCHEMA, ServerSettings};

/// The settings of a server and the store's data on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// The settings that the server reports.
    #[serde(flatten)]
    pub settings: ServerSettings,
    /// The schema version of the data, or `None` if there is no data.
    pub schema: Option<u32>,
    /// The schema version that this version of the store writes. Opening an older schema migrates
    /// it.
    pub newest_schema: u32,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of sessions that may have an active run.
    pub runs: u64,
}

impl Inspection {
    /// Returns the guarantees of a store on this server.
    #[must_use]
    pub fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(&self.settings)
    }

    /// Checks whether the store can use this server.
    ///
    /// # Errors
    /// Returns the error with which [`open`](crate::RedisBuilder::open) would refuse the server.
    pub fn check(&self) -> Result<()> {
        self.settings.check()?;
        settings::check_version(self.schema)
    }
}

pub(crate) async fn inspect(config: &Config) -> Result<Inspection> {
    let location = Location::parse(config)?;
    let settings = settings::read(&location.client, config.operation_timeout).await?;
    let server = Server::connect(&location, settings.is_cluster, config.operation_timeout).await?;
    let keys = &location.keys;
    Ok(Inspection {
        schema: settings::schema(&server, keys).await?,
        newest_schema: SCHEMA,
        sessions: server.size(&keys.sessions()).await?,
        runs: server.size(&keys.runs()).await?,
        settings,
    })
}
