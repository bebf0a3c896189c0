//! What a worker does with its session.
//!
//! * `run` begins it, `resume` goes on with it.
//! * `tell` begins or goes on, whichever it is, gives the answers that are asked for, and does what the
//!   scenario has after its end: the same in every process, until nothing is left.
//! * `back VERSION` goes back to a checkpoint and on from there.
//! * `fork NAME` forks it at its first checkpoint and tells the fork.
//! * `answer WORD` answers every call that waits for people, in its own way.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use helix_agents::agent::AnyAgent;
use helix_agents::budget::Budget;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::event::Event;
use helix_agents::executor::{
    AgentExecutor, AgentResult, ExecuteOptions, ForkOptions, Resumable, ResumeOptions, RunHandle,
};
use helix_agents::id::SessionId;
use helix_agents::session::{Durability, RunStatus, load_events};
use helix_agents::store::{Page, SessionFilter};
use helix_agents_testkit::trees::Stores;
use serde_json::{Value, json};

use crate::runtimes::{self, Opened, World};
use crate::scenarios::{self, Scenario, Sequel};

/// How long a story may take. A worker of Temporal that stands still holds parts back that the server has handed to it:
/// each costs its successor a timeout of ten seconds.
const PATIENCE: Duration = Duration::from_secs(150);

/// How often a worker looks for what others do.
const PACE: Duration = Duration::from_millis(5);

/// How long what was stopped may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// The session of every scenario.
const SESSION: &str = "story";

/// The run that a session begins with.
const BEGINNING: &str = "beginning";

/// The one that its forks are told under, if the scenario forks.
const FORK: &str = "fork";

/// One worker.
#[derive(Debug)]
pub struct Teller {
    runtime: Arc<dyn AgentExecutor>,
    store: Stores,
    /// What carries runs out, as long as this is told.
    _opened: Opened,
    agent: AnyAgent,
    sequel: Sequel,
}

impl Teller {
    /// A worker on that runtime and store, whose tools leave a trace in that file.
    ///
    /// # Errors
    /// If there is no such scenario, and the runtime's.
    pub async fn new(
        runtime: &str,
        scenario: &str,
        durability: Durability,
        store: Stores,
        trace: &Path,
    ) -> Result<Self> {
        let scenario = scenarios::named(scenario, trace)
            .with_context(|| format!("unknown scenario `{scenario}`"))?;
        let world = World {
            store: store.clone(),
            llm: Arc::clone(&scenario.llm),
            registry: scenario.registry.clone(),
            durability,
            lease: lease()?,
            grace: GRACE,
        };
        let opened = runtimes::open(runtime, world).await?;
        let runtime = Arc::clone(&opened.executor);
        let Scenario { agent, sequel, .. } = scenario;
        Ok(Self { runtime, store, _opened: opened, agent, sequel })
    }

    /// Does what a verb says. What the session answered, or what was refused.
    ///
    /// # Errors
    /// If there is no such verb, or it hangs.
    pub async fn drive(&self, verb: &str, argument: Option<&str>) -> Result<Result<Value, Error>> {
        let session = SessionId::from(SESSION);
        let told = async {
            Ok(match (verb, argument) {
                ("run", None) => ended(self.execute(&session).await).await,
                ("resume", None) => ended(self.resume(&session, patient()).await).await,
                ("tell", None) => self.tell(&session).await,
                ("back", Some(version)) => {
                    let options = patient().from_checkpoint(version.parse()?);
                    ended(self.resume(&session, options).await).await
                }
                ("fork", Some(name)) => self.fork(&session, &name.into()).await,
                ("answer", Some(word)) => return Ok(self.answer(&session, word).await),
                _ => bail!("unknown verb `{verb}`"),
            }
            .map(|result| json!({
                "status": result.status.as_str(), "output": result.output, "error": result.error,
            })))
        };
        tokio::time::timeout(PATIENCE, told).await.context("it hangs")?
    }

    /// Begins the session, or attaches to what another worker began: it is begun once.
    async fn execute(&self, session: &SessionId) -> Result<RunHandle, Error> {
        let options = ExecuteOptions::default().session(session.clone()).run(BEGINNING);
        self.runtime.execute(Arc::clone(&self.agent), "go".into(), options).await
    }

    async fn resume(
        &self,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle, Error> {
        self.runtime.resume(Arc::clone(&self.agent), session, options).await
    }

    /// Whatever has to be done until nothing is left.
    async fn tell(&self, session: &SessionId) -> Result<AgentResult, Error> {
        let result = self.to_its_end(session).await?;
        match self.sequel {
            Sequel::Nothing | Sequel::MoreBudget => Ok(result),
            Sequel::Fork => {
                let fork = SessionId::from(FORK);
                match self.fork(session, &fork).await {
                    Err(error) if error.code() == ErrorCode::SessionExists => {
                        self.to_its_end(&fork).await
                    }
                    told => told,
                }
            }
            Sequel::GoBack => {
                let log = load_events(&*self.store.state, session, 0).await?;
                let went_back =
                    log.iter().any(|recorded| matches!(recorded.event, Event::Rewound { .. }));
                if !went_back {
                    let first = self.first_checkpoint(session).await?;
                    self.resume(session, patient().from_checkpoint(first)).await?.result().await?;
                }
                self.to_its_end(session).await
            }
        }
    }

    async fn to_its_end(&self, session: &SessionId) -> Result<AgentResult, Error> {
        loop {
            let waits = match self.runtime.handle(session).await {
                Ok(handle) => handle.fold().await?.current_run().is_none(),
                Err(_) => false,
            };
            if waits && !self.people(session).await? {
                tokio::time::sleep(PACE).await;
                continue;
            }
            match self.runtime.can_resume(session).await {
                Ok(Resumable::Yes | Resumable::Running) => {
                    let mut options = patient();
                    let handle = self.runtime.handle(session).await?;
                    let fold = handle.fold().await?;
                    if self.sequel == Sequel::MoreBudget
                        && fold.last_run().is_some_and(|run| run.status == RunStatus::Failed)
                    {
                        options = options.budget(Budget::new().tokens(1000));
                    }
                    self.resume(session, options).await?.result().await?;
                }
                Ok(Resumable::Waiting) => {}
                Ok(_) => {
                    let handle = self.runtime.handle(session).await?;
                    // Whoever looks brings the stream into line.
                    drop(handle.stream().await?);
                    return handle.result().await;
                }
                Err(error) if error.code() == ErrorCode::SessionNotFound => {
                    self.execute(session).await?.result().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// People answer when the whole family rests and no deadline is left to wait for, and all that
    /// they are asked. Says whether they had time.
    async fn people(&self, session: &SessionId) -> Result<bool, Error> {
        let filter = SessionFilter { root: Some(session.clone()), ..SessionFilter::default() };
        let family = self.store.state.list(&filter, &Page::default()).await?;
        if family.iter().any(|head| head.summary.run.is_some()) {
            drop(self.runtime.sweep().await?);
            return Ok(false);
        }
        let pending = self.runtime.pending_calls(session).await?;
        let (dated, open): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|view| view.pending.deadline.is_some());
        if !dated.is_empty() && self.runtime.can_resume(session).await? == Resumable::Waiting {
            return Ok(false);
        }
        for view in open {
            self.runtime.submit_tool_result(session, scenarios::answer(&view)?).await?;
        }
        Ok(true)
    }

    async fn first_checkpoint(&self, session: &SessionId) -> Result<u64, Error> {
        let fold = self.runtime.handle(session).await?.fold().await?;
        let first = fold.checkpoints().first().map(|checkpoint| checkpoint.version);
        first.ok_or_else(|| Error::new(ErrorCode::CheckpointNotFound, "no step is closed yet"))
    }

    async fn fork(&self, session: &SessionId, fork: &SessionId) -> Result<AgentResult, Error> {
        let at = self.first_checkpoint(session).await?;
        let options = ForkOptions::default().at(at).session(fork.clone());
        self.runtime.fork(session, options).await?;
        self.to_its_end(fork).await
    }

    /// The calls whose answers were taken, and why the others were not.
    async fn answer(&self, session: &SessionId, word: &str) -> Result<Value, Error> {
        let (mut taken, mut refused) = (Vec::new(), Vec::new());
        for view in self.runtime.pending_calls(session).await? {
            let call = view.reference().to_string();
            let given = scenarios::answer_by(&view, word)?;
            match self.runtime.submit_tool_result(session, given).await {
                Ok(_) => taken.push(call),
                Err(error) => refused.push(error.code().as_str()),
            }
        }
        Ok(json!({ "taken": taken, "refused": refused }))
    }
}

/// `HELIX_LEASE_MS`; without it so long that a busy machine breaks none.
fn lease() -> Result<Duration> {
    match std::env::var("HELIX_LEASE_MS") {
        Ok(time) => Ok(Duration::from_millis(time.parse().context("HELIX_LEASE_MS")?)),
        Err(_) => Ok(Duration::from_secs(20)),
    }
}

/// A dead owner's lease is waited for.
fn patient() -> ResumeOptions {
    ResumeOptions::default().wait(Duration::from_secs(60))
}

async fn ended(handle: Result<RunHandle, Error>) -> Result<AgentResult, Error> {
    handle?.result().await
}
