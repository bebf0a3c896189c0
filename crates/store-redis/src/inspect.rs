//! Inspection of a server and of the store's data, without changing anything.

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;

use crate::config::Config;
use crate::connection::Server;
use crate::location::Location;
use crate::settings::{self, Persistence, SCHEMA, ServerSettings};
use crate::{error, guarantees};

/// The settings of a server and the store's data on it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// The settings that the server reports.
    pub settings: ServerSettings,
    /// The schema version of the data, or `None` if there is no data.
    pub schema: Option<u32>,
    /// The schema version that this version of the store writes.
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
    /// The error with which [`open`](crate::RedisBuilder::open) would refuse the server.
    pub fn check(&self) -> Result<()> {
        self.settings.check()
    }

    /// Returns warnings about the settings, each with its remedy.
    #[must_use]
    pub fn warnings(&self) -> Vec<(&'static str, &'static str)> {
        let settings = &self.settings;
        let mut warnings = Vec::new();
        warnings.extend(match settings.persistence {
            Persistence::Always => None,
            Persistence::EverySecond => Some((
                "a power loss may lose the last second of appends",
                "set `appendfsync always`, unless this loss is acceptable",
            )),
            Persistence::SomeTime => Some((
                "a power loss may lose the last half minute of appends",
                "set `appendfsync everysec`, or `always` to keep all of them",
            )),
            Persistence::Unknown => Some((
                "the server does not reveal how often it syncs its append-only file to the disk",
                "check its `appendfsync` setting",
            )),
            Persistence::Snapshots => Some((
                "a restart of the server loses all appends since its last snapshot",
                "set `appendonly yes`",
            )),
        });
        if settings.max_memory == 0 {
            warnings.push((
                "the server may use all memory of its machine",
                "set `maxmemory`, so that appends fail before the system kills the server",
            ));
        } else if settings.used_memory / 9 > settings.max_memory / 10 {
            warnings.push((
                "the server uses more than 90 % of its `maxmemory`",
                "increase it, or delete sessions that are no longer needed",
            ));
        }
        warnings
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
        sessions: count(&server, &keys.sessions()).await?,
        runs: count(&server, &keys.runs()).await?,
        settings,
    })
}

async fn count(server: &Server, key: &str) -> Result<u64> {
    let value = server.run(redis::cmd("ZCARD").arg(key)).await?;
    redis::from_redis_value(value).map_err(|error| error::classify(error.into()))
}
