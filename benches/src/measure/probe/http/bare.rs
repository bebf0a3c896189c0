//! Axum handlers without anything around the calls: no authorization, no limits, no log, no schema.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::extract::{Query, State};
use axum::response::sse::{Event, Sse};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{Stream, StreamExt as _, stream};
use helix_agents::agent::{AgentRegistry, FactoryContext};
use helix_agents::executor::{AgentExecutor, ExecuteOptions, Input};
use helix_agents::id::SessionId;
use helix_agents::session::{SessionReader, usage_of_tree};
use helix_agents::store::StateStore;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The state of the handlers.
#[derive(Clone)]
pub(super) struct Bare {
    pub(super) executor: Arc<dyn AgentExecutor>,
    pub(super) registry: AgentRegistry,
    pub(super) store: Arc<dyn StateStore>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Which {
    session_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    session_id: String,
    agent_type: String,
    message: String,
}

impl Bare {
    pub(super) async fn serve(self, listener: TcpListener) -> Result<()> {
        let router = Router::new()
            .route("/status", get(status))
            .route("/start", post(start))
            .route("/sse", get(follow))
            .with_state(self);
        Ok(axum::serve(listener, router).await?)
    }

    async fn status(&self, session: &SessionId) -> Result<Value> {
        let head = self.store.head(session).await?.context("no session")?;
        let reader = SessionReader::of(&*self.store);
        let fold = reader.overview(session).await?;
        let run = fold.last_run().context("no run")?;
        Ok(json!({
            "sessionId": head.session, "agentType": head.created.agent, "version": head.position.version,
            "status": head.summary.status, "pending": head.summary.pending,
            "run": { "runId": run.id, "turn": run.turn, "status": run.status.as_str(), "output": run.output },
            "canResume": format!("{:?}", self.executor.can_resume(session).await?),
            "pendingCalls": self.executor.pending_calls(session).await?,
            "usage": usage_of_tree(reader, session).await?,
        }))
    }

    async fn start(&self, request: Start) -> Result<Value> {
        let session = SessionId::from(request.session_id);
        let agent =
            self.registry.resolve(&request.agent_type, &FactoryContext::new(session.clone()))?;
        let options = ExecuteOptions::default().session(session.clone());
        let handle = self.executor.execute(agent, Input::from(request.message), options).await?;
        Ok(json!({ "sessionId": session, "runId": handle.run() }))
    }

    async fn follow(
        &self,
        session: &SessionId,
    ) -> Result<impl Stream<Item = Event> + Send + use<>> {
        let chunks = self.executor.follow(session, 1).await?;
        Ok(chunks.scan(false, |has_ended, stored| {
            let stored = stored.ok().filter(|_| !*has_ended);
            *has_ended = stored.as_ref().is_none_or(|stored| stored.chunk.kind.ends_run());
            let event = stored.and_then(|stored| {
                Event::default().id(stored.seq.to_string()).json_data(&stored).ok()
            });
            std::future::ready(event)
        }))
    }
}

async fn status(State(bare): State<Bare>, Query(which): Query<Which>) -> Json<Value> {
    Json(bare.status(&which.session_id.into()).await.unwrap_or_default())
}

async fn start(State(bare): State<Bare>, Json(request): Json<Start>) -> Json<Value> {
    Json(bare.start(request).await.unwrap_or_default())
}

async fn follow(
    State(bare): State<Bare>,
    Query(which): Query<Which>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = match bare.follow(&which.session_id.into()).await {
        Ok(events) => events.left_stream(),
        Err(_) => stream::empty().right_stream(),
    };
    Sse::new(events.map(Ok))
}
