//! A loop of one's own over the step machine of the core: what a runtime is made of, without
//! streams, hooks, timeouts and renewals.
//!
//! The machine says what comes next, the loop carries it out, the journal records it. What the
//! machine says depends on the log and on nothing else, so this loop goes on where any other one
//! stopped, and writes the same log.

mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helix_agents::agent::AnyAgent;
use helix_agents::clock::IdSource;
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::event::{Event, ModelReply};
use helix_agents::executor::AgentResult;
use helix_agents::id::SessionId;
use helix_agents::llm::{DEFAULT_MAX_RETRIES, LlmAdapter, LlmRequest, NoSink, ToolChoice};
use helix_agents::runtime_local::{SystemIds, TokioClock};
use helix_agents::session::{
    Durability, Journal, JournalConfig, Session, StartOutcome, StartRun, execute_events, load,
    resume_events,
};
use helix_agents::step::{Action, CallTask, build_messages_for_llm};
use helix_agents::store::{NewSession, RetryingStore, StateStore};
use tokio_util::sync::CancellationToken;

/// The kind of this loop, as it stands in logs.
const RUNTIME: &str = "own-loop";

/// The loop, with what it needs.
#[derive(Debug)]
pub struct OwnLoop {
    parts: JournalConfig,
    llm: Arc<dyn LlmAdapter>,
}

impl OwnLoop {
    /// A loop. No model call or tool may take longer than the lease, for nobody renews it
    /// meanwhile: another process would take the run over.
    pub fn new(store: Arc<dyn StateStore>, llm: Arc<dyn LlmAdapter>, lease: Duration) -> Self {
        let ids: Arc<dyn IdSource> = Arc::new(SystemIds);
        let clock = Arc::new(TokioClock::new());
        let parts = JournalConfig {
            store: Arc::new(RetryingStore::new(store, clock, Arc::clone(&ids), lease * 2 / 3)),
            ids,
            lease,
            durability: Durability::PerEffect,
        };
        Self { parts, llm }
    }

    /// Carries out a turn: of a new session, or of one whose last run ended.
    ///
    /// # Errors
    /// If the turn cannot be started, and the store's.
    pub async fn execute(
        &self,
        agent: &AnyAgent,
        session: &SessionId,
        message: &str,
    ) -> Result<AgentResult> {
        let head = self.parts.store.head(session).await?;
        let fold = match &head {
            Some(_) => load(&*self.parts.store, session).await?,
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

    /// Goes on with a session that failed, was interrupted, or whose process died.
    ///
    /// # Errors
    /// If there is nothing to go on with, or somebody else is at it; and the store's.
    pub async fn resume(&self, agent: &AnyAgent, session: &SessionId) -> Result<AgentResult> {
        let fold = load(&*self.parts.store, session).await?;
        let last = fold.last_run().map(|run| run.id.clone());
        let begin = self.begin();
        let events = resume_events(&fold, agent, &begin, last.as_ref(), None)?;
        let mut journal = self.journal(agent, fold, &begin);
        start(&mut journal, events).await?;
        self.drive(agent, journal).await
    }

    /// The loop itself: asks, carries out, records, and asks again.
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
                // What is decided, the journal works out by itself.
                decision if decision.is_decision() => record(&mut journal, &[]).await?,
                other => {
                    let message = format!("this loop cannot carry out {other:?}");
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
        let request = LlmRequest {
            prompt: &messages.system,
            messages: messages.transcript,
            tools: agent.effective_tools(),
            tool_choice: match agent.completion_tool() {
                Some(name) if force_completion => ToolChoice::Tool(name),
                _ => ToolChoice::Auto,
            },
            output_schema: agent.native_output_schema(),
            config: agent.llm(),
            max_retries: agent.llm().max_retries.unwrap_or(DEFAULT_MAX_RETRIES),
            cancel: &CancellationToken::new(),
            agent: agent.name(),
            session: session.id(),
        };
        let response = self.llm.generate_step(request, &NoSink).await?;
        Ok(Event::from(ModelReply::from_response(step, response, 0)))
    }

    fn begin(&self) -> StartRun {
        StartRun::new(self.parts.ids.run(), RUNTIME, 0)
    }

    fn journal(&self, agent: &AnyAgent, fold: Session, begin: &StartRun) -> Journal {
        Journal::new(self.parts.clone(), Arc::clone(agent), fold, begin.run.clone())
    }
}

/// Starts a run on a session that exists. Of several callers one does.
async fn start(journal: &mut Journal, events: Vec<Event>) -> Result<()> {
    match journal.start(events).await? {
        StartOutcome::Started => Ok(()),
        StartOutcome::Changed => {
            Err(Error::new(ErrorCode::AlreadyResumed, "somebody else was first"))
        }
        StartOutcome::Leased { until, .. } => {
            let error = Error::new(ErrorCode::AlreadyRunning, "the session has a live run");
            Err(error.with_context("lease_until", until))
        }
    }
}

/// Appends facts, the decisions that follow from them, and the end of the run, if that is next.
/// Runs a call, with its start on record before if it must not run twice.
async fn run_tool(agent: &AnyAgent, journal: &mut Journal, task: &CallTask) -> Result<()> {
    if let Some(start) = tools::started(agent, journal, task) {
        record(journal, &[start]).await?;
    }
    let result = tools::run(agent, journal, task).await?;
    record(journal, &[result]).await
}

async fn record(journal: &mut Journal, facts: &[Event]) -> Result<()> {
    journal.stage(facts)?;
    journal.end_run()?;
    journal.commit().await.map(drop)
}
