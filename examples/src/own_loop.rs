//! A custom agent loop on the core's step machine. It shows the essence of a runtime, without
//! streams, hooks, timeouts and lease renewal.
//!
//! The step machine decides the next action, the loop executes it, and the journal records the
//! result. The decisions depend only on the log. So this loop can continue a run that any other
//! loop started, and it writes the same log.

mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helix_agents::agent::AnyAgent;
use helix_agents::clock::IdSource;
use helix_agents::clock::IdSourceExt as _;
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::event::{Event, ModelReply};
use helix_agents::executor::AgentResult;
use helix_agents::id::SessionId;
use helix_agents::llm::{LlmAdapter, LlmRequest, NoSink, ToolChoice};
use helix_agents::observer::Observers;
use helix_agents::runtime_local::{SystemIds, TokioClock};
use helix_agents::session::{
    Durability, Journal, JournalConfig, Session, StartOutcome, StartRun, execute_events, load,
    resume_events,
};
use helix_agents::step::{Action, CallTask, build_messages_for_llm};
use helix_agents::store::{NewSession, RetryingStore, StateStore};
use tokio_util::sync::CancellationToken;

/// The runtime name that this loop records in logs.
const RUNTIME: &str = "own-loop";

/// The loop and its dependencies.
#[derive(Debug)]
pub struct OwnLoop {
    config: JournalConfig,
    llm: Arc<dyn LlmAdapter>,
}

impl OwnLoop {
    /// Creates a loop. No model call and no tool may take longer than the lease, because the loop
    /// does not renew it: after lease expiry, another process would take over the run.
    pub fn new(store: Arc<dyn StateStore>, llm: Arc<dyn LlmAdapter>, lease: Duration) -> Self {
        let ids: Arc<dyn IdSource> = Arc::new(SystemIds);
        let clock = Arc::new(TokioClock::new());
        let config = JournalConfig {
            store: Arc::new(RetryingStore::new(store, clock, Arc::clone(&ids), lease * 2 / 3)),
            ids,
            lease,
            durability: Durability::PerEffect,
            observers: Observers::default(),
        };
        Self { config, llm }
    }

    /// Executes a turn of a new session, or of one whose last run has ended.
    ///
    /// # Errors
    /// Fails if the turn cannot be started, or if the store or the model fails.
    pub async fn execute(
        &self,
        agent: &AnyAgent,
        session: &SessionId,
        message: &str,
    ) -> Result<AgentResult> {
        let head = self.config.store.head(session).await?;
        let fold = match &head {
            Some(_) => load(&*self.config.store, session).await?,
            None => Session::new(session.clone()),
        };
        let alive = head.as_ref().is_some_and(|head| head.is_leased());
        let begin = self.begin();
        let events =
            execute_events(&fold, agent, &begin, &message.into(), &BTreeMap::new(), alive)?;
        let mut journal = self.journal(agent, fold, &begin);
        if head.is_some() {
            start(&mut journal, events).await?;
        } else {
            let new = NewSession {
                agent: Arc::clone(agent.name()),
                root: session.clone(),
                parent: None,
                tags: BTreeMap::new(),
            };
            journal.create(new, events).await?;
        }
        self.drive(agent, journal).await
    }

    /// Resumes a session whose last run failed, was interrupted, or lost its process.
    ///
    /// # Errors
    /// Fails if there is nothing to resume, if another process owns the run, or if the store or the
    /// model fails.
    pub async fn resume(&self, agent: &AnyAgent, session: &SessionId) -> Result<AgentResult> {
        let fold = load(&*self.config.store, session).await?;
        let last = fold.last_run().map(|run| run.id.clone());
        let begin = self.begin();
        let events = resume_events(&fold, agent, &begin, last.as_ref(), None)?;
        let mut journal = self.journal(agent, fold, &begin);
        start(&mut journal, events).await?;
        self.drive(agent, journal).await
    }

    /// Runs the loop: gets the next action, executes it, records the result, and repeats.
    async fn drive(&self, agent: &AnyAgent, mut journal: Journal) -> Result<AgentResult> {
        loop {
            match journal.next() {
                Action::Idle => break,
                Action::CallModel { step, force_completion } => {
                    let reply = self.call_model(agent, &journal, step, force_completion).await?;
                    record(&mut journal, &[reply]).await?;
                }
                Action::RunTools { calls: tasks, .. } => {
                    for task in tasks {
                        run_tool(agent, &mut journal, &task).await?;
                    }
                }
                Action::RunFinishTool(task) => run_tool(agent, &mut journal, &task).await?,
                // Decisions need no execution. The journal computes their events.
                decision if decision.is_decision() => record(&mut journal, &[]).await?,
                other => {
                    let message = format!("this loop does not support {other:?}");
                    return Err(Error::new(ErrorCode::Unsupported, message));
                }
            }
        }
        let last = journal.session().last_run();
        last.map(AgentResult::of)
            .ok_or_else(|| Error::new(ErrorCode::RunNotFound, "the session has no run"))
    }

    async fn call_model(
        &self,
        agent: &AnyAgent,
        journal: &Journal,
        step: u32,
        force_completion: bool,
    ) -> Result<Event> {
        let session = journal.session();
        let messages = build_messages_for_llm(session.transcript(), agent, session.state())?;
        let tool_choice = match agent.completion_tool() {
            Some(name) if force_completion => ToolChoice::Tool(name),
            _ => ToolChoice::Auto,
        };
        let (system, transcript) = (&messages.system, messages.transcript);
        let cancel = CancellationToken::new();
        let request = LlmRequest::new(session.id(), agent.llm(), system, transcript, &cancel)
            .agent(agent.name())
            .tools(agent.effective_tools())
            .tool_choice(tool_choice)
            .output_schema(agent.native_output_schema());
        let response = self.llm.generate_step(request, &NoSink).await?;
        Ok(Event::from(ModelReply::from_response(step, response, 0)))
    }

    fn begin(&self) -> StartRun {
        StartRun::new(self.config.ids.run(), RUNTIME, 0)
    }

    fn journal(&self, agent: &AnyAgent, fold: Session, begin: &StartRun) -> Journal {
        Journal::new(self.config.clone(), Arc::clone(agent), fold, begin.run.clone())
    }
}

/// Starts a run on an existing session. If several callers try, only one succeeds.
async fn start(journal: &mut Journal, events: Vec<Event>) -> Result<()> {
    match journal.start(events).await? {
        StartOutcome::Started => Ok(()),
        StartOutcome::Changed => {
            Err(Error::new(ErrorCode::AlreadyResumed, "another caller started a run first"))
        }
        StartOutcome::Leased { until, .. } => {
            let error = Error::new(ErrorCode::AlreadyRunning, "the session has an active run");
            Err(error.with_context("lease_until", until))
        }
    }
}

/// Executes a tool call. If the call must not run twice, its start is recorded first.
async fn run_tool(agent: &AnyAgent, journal: &mut Journal, task: &CallTask) -> Result<()> {
    if let Some(start) = tools::started(agent, journal, task) {
        record(journal, &[start]).await?;
    }
    let result = tools::run(agent, journal, task).await?;
    record(journal, &[result]).await
}

/// Appends events, the decisions that follow from them, and the end of the run if it is next.
async fn record(journal: &mut Journal, events: &[Event]) -> Result<()> {
    journal.stage(events)?;
    journal.end_run()?;
    journal.commit().await.map(drop)
}
