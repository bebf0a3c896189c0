//! The footprint of runs in a store: the logs as the store returns them, and sizes as the database
//! reports them.

use anyhow::{Context as _, Result};
use helix_agents::event::Event;
use helix_agents::id::SessionId;
use helix_agents::prelude::*;
use helix_agents::store::{Head, MAX_PAGE, Page, SessionFilter};

use super::engine::Namespace;
use super::place::{Location, Place};
use crate::job::{Engine, EngineTraces, Footprint, StepAppends, Traces};

mod dbos;
mod postgres;
mod redis;
mod sqlite;
mod temporal;

/// Measures the footprint of runs that start after its creation.
pub(super) enum Watch {
    Nowhere,
    Sqlite(sqlite::Watch),
    Postgres(postgres::Watch),
    Redis(redis::Watch),
}

impl Watch {
    pub(super) async fn begin(place: &Place) -> Result<Self> {
        Ok(match &place.location {
            Location::Nowhere => Self::Nowhere,
            Location::File { path, .. } => Self::Sqlite(sqlite::Watch::begin(path)?),
            Location::Postgres(location) => Self::Postgres(postgres::Watch::begin(location).await?),
            Location::Redis(location) => Self::Redis(redis::Watch::begin(location).await?),
        })
    }

    /// Returns the difference since the start.
    pub(super) async fn end(self, place: &Place, namespace: &Namespace) -> Result<Footprint> {
        let session = first_session(&*place.handles.state).await?;
        // The engine is notified of the end of a run after the caller.
        let engine = match namespace.engine {
            Engine::Local => EngineTraces::default(),
            Engine::Durable => dbos::left(namespace).await?,
            Engine::Temporal => temporal::left(namespace, &session).await?,
        };
        let traces = match self {
            Self::Nowhere => Traces::default(),
            Self::Sqlite(watch) => watch.end()?,
            Self::Postgres(watch) => watch.end().await?,
            Self::Redis(watch) => watch.end().await?,
        };
        Ok(Footprint {
            steps: steps(&*place.handles.state, &session.session).await?,
            traces,
            engine,
        })
    }
}

/// Returns the session of the runs, or one of them.
async fn first_session(store: &dyn StateStore) -> Result<Head> {
    let page = Page { after: None, limit: 1 };
    let heads = store.list(&SessionFilter::default(), &page).await?;
    heads.into_iter().next().context("the runs left no session")
}

/// Returns the appends of a session's log by step. Appends before the first reply belong to step 0.
/// An append with a reply and all later ones belong to the step of the reply.
async fn steps(store: &dyn StateStore, session: &SessionId) -> Result<Vec<StepAppends>> {
    let mut steps: Vec<StepAppends> = Vec::new();
    let (mut step, mut after) = (0, 0);
    loop {
        let appends = store.read_log(session, after, MAX_PAGE).await?;
        let Some(last) = appends.last() else { return Ok(steps) };
        after = last.version();
        for append in &appends {
            let events: Vec<Event> = serde_json::from_slice(&append.body)
                .context("an append of the log is unreadable")?;
            let reply = events.iter().find_map(|event| match event {
                Event::ModelReplied(reply) => Some(reply.step),
                _ => None,
            });
            step = reply.map_or(step, |step| step as usize);
            if steps.len() <= step {
                steps.resize(step + 1, StepAppends::default());
            }
            if let Some(counted) = steps.get_mut(step) {
                counted.appends += 1;
                counted.bytes += append.body.len() as u64;
            }
        }
    }
}
