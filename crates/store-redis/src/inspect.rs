//! Looking at a server without changing anything.

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;

use crate::config::RedisBuilder;
use crate::connection::Server;
use crate::place::Place;
use crate::settings::{self, Persistence, SCHEMA, ServerSettings};
use crate::{error, guarantees};

/// What a server says of itself, and what is kept there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inspection {
    /// What the server says of itself.
    pub settings: ServerSettings,
    /// The form of the data; none if nothing is there yet.
    pub schema: Option<u32>,
    /// The form that this version writes.
    pub newest_schema: u32,
    /// How many sessions there are.
    pub sessions: u64,
    /// How many of them may have a run under way.
    pub runs: u64,
}

impl Inspection {
    /// What may be relied on there.
    #[must_use]
    pub fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(&self.settings)
    }

    /// Why the store would not work with this server.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(&self) -> Result<()> {
        self.settings.check()
    }

    /// What a person should know of the settings, each with what to do.
    #[must_use]
    pub fn warnings(&self) -> Vec<(&'static str, &'static str)> {
        let settings = &self.settings;
        let mut warnings = Vec::new();
        warnings.extend(match settings.persistence {
            Persistence::Always => None,
            Persistence::EverySecond => Some((
                "a loss of power may cost the last second of appends",
                "set `appendfsync always`, unless losing them is meant",
            )),
            Persistence::SomeTime => Some((
                "a loss of power may cost the last half minute of appends",
                "set `appendfsync everysec`, or `always` to keep all of them",
            )),
            Persistence::Unknown => Some((
                "the server does not tell how often it forces its append-only file to the disk",
                "look at its `appendfsync`",
            )),
            Persistence::Snapshots => Some((
                "a restart of the server forgets what was appended since its last snapshot",
                "set `appendonly yes`",
            )),
        });
        if settings.max_memory == 0 {
            warnings.push((
                "the server may use all memory of its machine",
                "set `maxmemory`, so that appends fail before the system kills it",
            ));
        } else if settings.used_memory / 9 > settings.max_memory / 10 {
            warnings.push((
                "more than nine tenths of the server's `maxmemory` are used up",
                "raise it, or delete sessions that nobody needs",
            ));
        }
        warnings
    }
}

pub(crate) async fn inspect(options: &RedisBuilder) -> Result<Inspection> {
    let place = Place::of(options)?;
    let settings = settings::ask(&place.client, options.operation_timeout).await?;
    let server = Server::connect(&place, settings.is_cluster, options).await?;
    let keys = &place.keys;
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
