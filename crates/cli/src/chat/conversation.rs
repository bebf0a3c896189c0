//! A conversation: its agent, its session and its turns.

use std::ops::ControlFlow::{self, Break, Continue};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{ExecuteOptions, Resumable};
use helix_agents::id::SessionId;
use helix_agents::terminal::{Screen, Style, notice};
use helix_agents::usage::Usage;

use super::agent::ChatAgent;
use super::plain::MAX_MESSAGE_BYTES;
use crate::approver::Approver;
use crate::drive;
use crate::executor::Executor;
use crate::exit::Exit;
use crate::location::Location;
use crate::model::Model;
use crate::place::Place;
use crate::run_view::RunView;
use crate::session_agent;
use crate::signals::{Signal, Signals};
use crate::summary::{EndedRun, Turn};
use crate::{follow_up, lease_wait, summary};

/// A conversation with an agent.
pub(super) struct Conversation<'a> {
    pub(super) agent: ChatAgent,
    /// The agent file named on the command line.
    pub(super) file: Option<PathBuf>,
    executor: Executor,
    /// The session; `None` before the first message.
    pub(super) session: Option<SessionId>,
    pub(super) place: &'a Place,
    pub(super) db: &'a Location,
    pub(super) screen: &'a Screen,
    /// Whether the user can be asked for approvals.
    pub(super) interactive: bool,
}

impl<'a> Conversation<'a> {
    /// Creates a conversation that continues `session`, or starts a session with the first message.
    pub(super) fn new(
        agent: ChatAgent,
        file: Option<PathBuf>,
        session: Option<SessionId>,
        place: &'a Place,
        db: &'a Location,
        screen: &'a Screen,
    ) -> Result<Self> {
        let executor = agent.executor(place)?;
        Ok(Self { agent, file, executor, session, place, db, screen, interactive: false })
    }

    /// Replaces the agent and its model for the following turns.
    pub(super) fn set_agent(&mut self, agent: ChatAgent) -> Result<()> {
        self.executor = agent.executor(self.place)?;
        self.agent = agent;
        Ok(())
    }

    /// Shows the agent, the model and the status of the session.
    pub(super) async fn introduce(&self) -> Result<()> {
        let name = self.screen.styled(Style::Bold, self.agent.name());
        self.screen.line(match self.agent.model() {
            Some(model) => format!("{name} with {model}"),
            None => format!("{name} at {}", self.db.shown()),
        })?;
        self.screen.note("/help lists the commands, Ctrl-D leaves")?;
        self.agent.show_warnings(self.screen);
        self.show_status().await
    }

    /// Shows the status of the session, if there is one.
    pub(super) async fn show_status(&self) -> Result<()> {
        let Some(session) = &self.session else { return Ok(()) };
        let head = self.place.head(session.as_str()).await?;
        let status = head.summary.status;
        let text = match (self.place.can_resume(session).await?, &head.summary.run) {
            (Resumable::Running, _) => {
                "its last run may still be running in another process".into()
            }
            (Resumable::Yes, Some(_)) => {
                "its last run is unfinished: /resume continues it".to_owned()
            }
            (Resumable::Yes, None) => {
                format!(
                    "its last turn is {status}: /resume continues it, a message starts another one"
                )
            }
            (Resumable::Waiting, _) => {
                "its last turn waits for answers: /resume continues it once they are given"
                    .to_owned()
            }
            (_, _) => format!("its last turn is {status}"),
        };
        Ok(self.screen.note(&format!("session {session}: {text}"))?)
    }

    /// Returns `true` if the session has a run that can be resumed.
    pub(super) async fn is_open(&self) -> Result<bool> {
        let Some(session) = &self.session else { return Ok(false) };
        Ok(self.place.can_resume(session).await? != Resumable::Ended)
    }

    /// Shows the command that continues the session.
    pub(super) fn leave(&self) {
        if let Some(session) = &self.session {
            let again = follow_up::command("chat --session", session, self.db);
            notice(&format!("the session was saved; to continue: {again}"));
        }
    }

    /// Runs a turn with a message.
    pub(super) async fn turn(&mut self, message: String) -> Result<Exit> {
        let started = Instant::now();
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(unusable(format!(
                "a message must not be longer than {MAX_MESSAGE_BYTES} bytes"
            )));
        }
        let mut options = ExecuteOptions::default();
        options.tags = self.agent.tags();
        options.session.clone_from(&self.session);
        let before = self.usage().await?;
        let execution = self.executor.start(message, options).await;
        let handle = execution.map_err(|error| match error.code() {
            ErrorCode::AlreadyRunning => unusable(
                "the last run may still be running in another process; /resume waits for its lease to \
                 expire and continues it, then send the message again",
            ),
            ErrorCode::RunUnfinished => unusable(
                "the last run is unfinished; /resume continues it, then send the message again",
            ),
            ErrorCode::Suspended => unusable(
                "the last turn waits for answers; /resume continues it once they are given",
            ),
            _ => error.into(),
        })?;
        self.session = Some(handle.session().clone());
        let (approver, run_view) = (Approver::default(), self.run_view(started));
        drive::turn(&self.executor, handle, approver, run_view, before).await
    }

    /// Resumes the last run if it was interrupted, failed or killed.
    pub(super) async fn resume(&self, signals: &mut Signals) -> Result<Flow> {
        let started = Instant::now();
        let Some(session) = &self.session else {
            return Err(unusable("there is no session yet; /resume SESSION continues another one"));
        };
        let head = self.place.head(session.as_str()).await?;
        if let Place::Store { store, .. } = self.place {
            for line in lease_wait::messages(&head, store).await? {
                self.screen.note(&line)?;
            }
        }
        let before = self.usage().await?;
        if self.place.can_resume(session).await? == Resumable::Waiting {
            return self.resume_waiting(session, before, started, signals).await;
        }
        let resumed = self.executor.resume(session, session_agent::wait_for_lease());
        let handle = tokio::select! {
            handle = resumed => handle?,
            signal = signals.next() => return Ok(stopped_by(signal)),
        };
        let (approver, run_view) = (Approver::default(), self.run_view(started));
        drive::turn(&self.executor, handle, approver, run_view, before).await.map(Continue)
    }

    /// Asks the user about the pending calls of the last turn and resumes it. If the user cannot be asked,
    /// shows the pending calls.
    async fn resume_waiting(
        &self,
        session: &SessionId,
        before: Usage,
        started: Instant,
        signals: &mut Signals,
    ) -> Result<Flow> {
        let handle = self.place.handle(session).await?;
        let ended = EndedRun::new(handle.result().await?, self.place, &handle).await?;
        let mut approver = Approver::default();
        let run_view = self.run_view(started);
        if self.interactive
            && approver.ask_all(self.place, &ended.waiting, self.db, signals).await?
        {
            let handle = self.executor.resume(session, session_agent::wait_for_lease()).await?;
            let turn = drive::turn(&self.executor, handle, approver, run_view, before);
            return turn.await.map(Continue);
        }
        let turn = Turn { before, text_shown: true };
        summary::show_turn(&handle, &ended, turn, run_view).map(Continue)
    }

    /// The token usage of the session so far.
    async fn usage(&self) -> Result<Usage> {
        let Some(session) = &self.session else { return Ok(Usage::default()) };
        Ok(self.place.overview(session).await?.usage.tokens)
    }

    fn run_view(&self, started: Instant) -> RunView<'_> {
        let model = self.agent.model().map(Model::name);
        RunView {
            screen: self.screen,
            db: self.db,
            model,
            started: Some(started),
            interactive: self.interactive,
        }
    }
}

/// Whether the chat continues after an entry or ends, with the exit code.
pub(super) type Flow = ControlFlow<Exit, Exit>;

/// Handles a signal that arrived while a command waited: Ctrl-C stops the command, any other signal
/// stops the program.
pub(super) fn stopped_by(signal: Signal) -> Flow {
    match signal {
        Signal::Interrupt => Continue(Exit::Interrupted),
        Signal::Terminate => Break(Exit::Interrupted),
    }
}

/// The error for an entry that cannot be used.
pub(super) fn unusable(reason: impl Into<String>) -> anyhow::Error {
    Error::new(ErrorCode::InputInvalid, reason.into()).into()
}
