//! The actions of a worker on its session.
//!
//! * `run` starts the session, `resume` resumes it.
//! * `tell` runs the story to its end: it starts or resumes the session, answers its pending calls, and does what the
//!   scenario has after the end of the turn. It is the same in every process, until nothing is left to do.
//! * `back VERSION` rewinds the session to a checkpoint and resumes it.
//! * `fork NAME` forks the session at its first checkpoint and runs the fork to its end.
//! * `answer WORD` answers every pending call with this word.

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

use crate::runtimes::{self, Opened, RuntimeConfig};
use crate::scenarios::{self, Scenario, Sequel};
use crate::span_file::SpanFile;

/// The time limit of a story. A stalled Temporal worker holds tasks that the server has assigned to it: each costs its
/// successor a timeout of ten seconds.
const TIMEOUT: Duration = Duration::from_secs(150);

/// The interval at which a worker polls for the effects of other workers.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The time after which a run without an owner is taken over. Shorter gaps are ignored, because an owner that is alive
/// may renew its lease late.
const ABANDONED_AFTER: Duration = Duration::from_secs(2);

/// The interval at which a worker checks whether a run has an owner.
const ABANDONED_POLL: Duration = Duration::from_millis(100);

/// The time that cancelled work may take to stop.
const GRACE: Duration = Duration::from_secs(5);

/// The session of every scenario.
const SESSION: &str = "story";

/// The id of the first run of a session.
const FIRST_RUN: &str = "beginning";

/// The session id of the fork, if the scenario forks.
const FORK: &str = "fork";

/// A worker of one scenario.
#[derive(Debug)]
pub struct Worker {
    runtime: Arc<dyn AgentExecutor>,
    /// An engine continues the runs of workers that are stopped or killed.
    has_engine: bool,
    store: Stores,
    /// Executes the runs as long as it is not dropped.
    _opened: Opened,
    agent: AnyAgent,
    sequel: Sequel,
}

impl Worker {
    /// Creates a worker on this runtime and store, whose tools append to this trace file.
    ///
    /// # Errors
    /// If there is no such scenario, or the runtime cannot be opened.
    pub async fn new(
        runtime: &str,
        scenario: &str,
        durability: Durability,
        store: Stores,
        trace: &Path,
    ) -> Result<Self> {
        let scenario = scenarios::named(scenario, trace)
            .with_context(|| format!("unknown scenario `{scenario}`"))?;
        let config = RuntimeConfig {
            store: store.clone(),
            llm: Arc::clone(&scenario.llm),
            registry: scenario.registry.clone(),
            durability,
            lease: lease()?,
            grace: GRACE,
            observers: vec![Arc::new(SpanFile::new(trace.with_file_name("spans")))],
        };
        let opened = runtimes::open(runtime, config).await?;
        let has_engine = !runtime.starts_with("local:");
        let runtime = Arc::clone(&opened.executor);
        let Scenario { agent, sequel, .. } = scenario;
        Ok(Self { runtime, has_engine, store, _opened: opened, agent, sequel })
    }

    /// Executes a verb and returns the result of the session or its error.
    ///
    /// # Errors
    /// If there is no such verb, or it exceeds the time limit.
    pub async fn drive(&self, verb: &str, argument: Option<&str>) -> Result<Result<Value, Error>> {
        let session = SessionId::from(SESSION);
        let outcome = async {
            Ok(match (verb, argument) {
                ("run", None) => ended(self.execute(&session).await).await,
                ("resume", None) => ended(self.resume(&session, wait_for_lease()).await).await,
                ("tell", None) => self.run_story(&session).await,
                ("back", Some(version)) => {
                    let options = wait_for_lease().checkpoint(version.parse()?);
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
        tokio::time::timeout(TIMEOUT, outcome).await.context("it exceeded the time limit")?
    }

    /// Starts the session, or attaches to the run that another worker started: it is started once.
    async fn execute(&self, session: &SessionId) -> Result<RunHandle, Error> {
        let options = ExecuteOptions::default().session(session.clone()).run(FIRST_RUN);
        self.runtime.execute(Arc::clone(&self.agent), "go".into(), options).await
    }

    async fn resume(
        &self,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle, Error> {
        self.runtime.resume(Arc::clone(&self.agent), session, options).await
    }

    /// Runs the story to its end, including what follows the turn.
    async fn run_story(&self, session: &SessionId) -> Result<AgentResult, Error> {
        let result = self.run_to_end(session).await?;
        match self.sequel {
            Sequel::Nothing | Sequel::MoreBudget => Ok(result),
            Sequel::Fork => {
                let fork = SessionId::from(FORK);
                match self.fork(session, &fork).await {
                    Err(error) if error.code() == ErrorCode::SessionExists => {
                        self.run_to_end(&fork).await
                    }
                    outcome => outcome,
                }
            }
            Sequel::Rewind => {
                let log = load_events(&*self.store.state, session, 0).await?;
                let is_rewound =
                    log.iter().any(|recorded| matches!(recorded.event, Event::Rewound { .. }));
                if !is_rewound {
                    let first = self.first_checkpoint(session).await?;
                    self.resume(session, wait_for_lease().checkpoint(first))
                        .await?
                        .result()
                        .await?;
                }
                self.run_to_end(session).await
            }
        }
    }

    async fn run_to_end(&self, session: &SessionId) -> Result<AgentResult, Error> {
        loop {
            let waits = match self.runtime.handle(session).await {
                Ok(handle) => handle.load_session().await?.current_run().is_none(),
                Err(_) => false,
            };
            if waits && !self.answer_all(session).await? {
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            match self.runtime.can_resume(session).await {
                Ok(Resumable::Yes | Resumable::Running) => {
                    let mut options = wait_for_lease();
                    let handle = self.runtime.handle(session).await?;
                    let fold = handle.load_session().await?;
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
                    // Reading the stream aligns it with the log.
                    drop(handle.stream().await?);
                    return handle.result().await;
                }
                Err(error) if error.code() == ErrorCode::SessionNotFound => {
                    let handle = self.execute(session).await?;
                    tokio::select! {
                        result = handle.result() => drop(result?),
                        () = self.abandoned(session), if !self.has_engine => {}
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until no process has owned the session's run for [`ABANDONED_AFTER`]. Another worker may have started the
    /// run just before this one, and then have been stopped.
    async fn abandoned(&self, session: &SessionId) {
        let mut unowned = Duration::ZERO;
        while unowned < ABANDONED_AFTER {
            tokio::time::sleep(ABANDONED_POLL).await;
            let is_unowned = matches!(self.runtime.can_resume(session).await, Ok(Resumable::Yes));
            unowned = if is_unowned { unowned + ABANDONED_POLL } else { Duration::ZERO };
        }
    }

    /// Answers all pending calls without deadlines, once the whole tree is inactive and no deadline is left to wait
    /// for. Returns `false` if it has to wait.
    async fn answer_all(&self, session: &SessionId) -> Result<bool, Error> {
        let filter = SessionFilter::new().root(session.clone());
        let family = self.store.state.list(&filter, &Page::default()).await?;
        if family.iter().any(|head| head.summary.run.is_some()) {
            drop(self.runtime.sweep().await?);
            return Ok(false);
        }
        let pending = self.runtime.pending_calls(session).await?;
        let (with_deadline, open): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|view| view.pending.deadline.is_some());
        if !with_deadline.is_empty()
            && self.runtime.can_resume(session).await? == Resumable::Waiting
        {
            return Ok(false);
        }
        for view in open {
            self.runtime.submit_tool_result(session, scenarios::answer(&view)?).await?;
        }
        Ok(true)
    }

    async fn first_checkpoint(&self, session: &SessionId) -> Result<u64, Error> {
        let fold = self.runtime.handle(session).await?.load_session().await?;
        let first = fold.checkpoints().first().map(|checkpoint| checkpoint.version);
        first.ok_or_else(|| Error::new(ErrorCode::CheckpointNotFound, "no step has ended yet"))
    }

    async fn fork(&self, session: &SessionId, fork: &SessionId) -> Result<AgentResult, Error> {
        let at = self.first_checkpoint(session).await?;
        let options = ForkOptions::default().checkpoint(at).session(fork.clone());
        self.runtime.fork(session, options).await?;
        self.run_to_end(fork).await
    }

    /// Answers all pending calls. Returns the calls whose answers were accepted, and the error codes of the others.
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

/// Returns the lease of `HELIX_LEASE_MS`. The default is so long that it does not expire on a busy machine.
fn lease() -> Result<Duration> {
    match std::env::var("HELIX_LEASE_MS") {
        Ok(time) => Ok(Duration::from_millis(time.parse().context("HELIX_LEASE_MS")?)),
        Err(_) => Ok(Duration::from_secs(20)),
    }
}

/// Returns options that wait for the lease of a crashed owner to expire.
fn wait_for_lease() -> ResumeOptions {
    ResumeOptions::default().wait(Duration::from_secs(60))
}

async fn ended(handle: Result<RunHandle, Error>) -> Result<AgentResult, Error> {
    handle?.result().await
}
