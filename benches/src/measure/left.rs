//! What runs left in a store: their logs as the store tells of them, and the rest as its database does.

use anyhow::{Context as _, Result};
use helix_agents::event::Event;
use helix_agents::id::SessionId;
use helix_agents::prelude::*;
use helix_agents::store::{Head, MAX_PAGE, Page, SessionFilter};

use super::engine::Spot;
use super::place::{Corner, Place};
use crate::job::{Engine, EngineTraces, Left, StepAppends, Traces};

mod dbos;
mod postgres;
mod redis;
mod sqlite;
mod temporal;

/// Looks at a database while runs write to it.
pub(super) enum Watch {
    Nowhere,
    Sqlite(sqlite::Watch),
    Postgres(postgres::Watch),
    Redis(redis::Watch),
}

impl Watch {
    pub(super) async fn begin(place: &Place) -> Result<Self> {
        Ok(match &place.corner {
            Corner::Nowhere => Self::Nowhere,
            Corner::File { path, .. } => Self::Sqlite(sqlite::Watch::begin(path)?),
            Corner::Postgres(corner) => Self::Postgres(postgres::Watch::begin(corner).await?),
            Corner::Redis(corner) => Self::Redis(redis::Watch::begin(corner).await?),
        })
    }

    /// What is there that was not.
    pub(super) async fn end(self, place: &Place, spot: &Spot) -> Result<Left> {
        let session = first_session(&*place.handles.state).await?;
        // It is told of the end after whoever began the run.
        let engine = match spot.engine {
            Engine::Local => EngineTraces::default(),
            Engine::Durable => dbos::left(spot).await?,
            Engine::Temporal => temporal::left(spot, &session).await?,
        };
        let traces = match self {
            Self::Nowhere => Traces::default(),
            Self::Sqlite(watch) => watch.end()?,
            Self::Postgres(watch) => watch.end().await?,
            Self::Redis(watch) => watch.end().await?,
        };
        Ok(Left { steps: steps(&*place.handles.state, &session.session).await?, traces, engine })
    }
}

/// The runs' session, or one of them.
async fn first_session(store: &dyn StateStore) -> Result<Head> {
    let page = Page { after: None, limit: 1 };
    let heads = store.list(&SessionFilter::default(), &page).await?;
    heads.into_iter().next().context("the runs left no session")
}

/// The appends to a session's log by step. What comes before the first reply is step 0; an append with a reply
/// in it and all after it belong to the reply's step.
async fn steps(store: &dyn StateStore, session: &SessionId) -> Result<Vec<StepAppends>> {
    let mut steps: Vec<StepAppends> = Vec::new();
    let (mut step, mut after) = (0, 0);
    loop {
        let appends = store.read_log(session, after, MAX_PAGE).await?;
        let Some(last) = appends.last() else { return Ok(steps) };
        after = last.version();
        for append in &appends {
            let events: Vec<Event> =
                serde_json::from_slice(&append.body).context("an append of the log")?;
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
