//! One conversation: who plays, in which session, and its turns.

use std::ops::ControlFlow::{self, Break, Continue};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{AgentExecutor as _, ExecuteOptions, Resumable};
use helix_agents::id::SessionId;
use helix_agents::prelude::LocalRuntime;
use helix_agents::session::load;
use helix_agents::usage::Usage;

use super::aside;
use super::plain::MOST;
use crate::ask::Person;
use crate::cast::{self, Cast};
use crate::drive;
use crate::exit::Exit;
use crate::screen::{Screen, Style, notice};
use crate::signals::{Signal, Signals};
use crate::stage::Stage;
use crate::store::Store;
use crate::summary::{Ended, Turn};
use crate::{storage, summary, waits};

/// A conversation.
pub(super) struct Conversation<'a> {
    pub(super) cast: Cast,
    /// The agent file that was named.
    pub(super) file: Option<PathBuf>,
    runtime: LocalRuntime,
    /// None before the first message.
    pub(super) session: Option<SessionId>,
    pub(super) store: &'a Store,
    pub(super) db: &'a Path,
    pub(super) screen: &'a Screen,
    /// Whether somebody is there to be asked what a turn waits for.
    pub(super) asks: bool,
}

impl<'a> Conversation<'a> {
    /// A conversation that goes on with `session`, or begins one with the first message.
    pub(super) fn new(
        cast: Cast,
        file: Option<PathBuf>,
        session: Option<SessionId>,
        store: &'a Store,
        db: &'a Path,
        screen: &'a Screen,
    ) -> Result<Self> {
        let runtime = cast.runtime(store.clone())?;
        Ok(Self { cast, file, runtime, session, store, db, screen, asks: false })
    }

    /// Other players for the turns to come.
    pub(super) fn recast(&mut self, cast: Cast) -> Result<()> {
        self.runtime = cast.runtime(self.store.clone())?;
        self.cast = cast;
        Ok(())
    }

    /// Says who is there, and how the session stands.
    pub(super) async fn introduce(&self) -> Result<()> {
        let name = self.screen.styled(Style::Bold, self.cast.agent().name());
        self.screen.line(format!("{name} with {}", self.cast.model()))?;
        aside(self.screen, "/help shows what there is beside messages, Ctrl-D leaves")?;
        self.cast.tell_remarks(self.screen);
        self.tell_standing().await
    }

    /// Says how the session stands, if there is one.
    pub(super) async fn tell_standing(&self) -> Result<()> {
        let Some(session) = &self.session else { return Ok(()) };
        let head = storage::head(self.store, session.as_str()).await?;
        let status = head.summary.status;
        let told = match (self.runtime.can_resume(session).await?, &head.summary.run) {
            (Resumable::Running, _) => "its last run may still be alive in another process".into(),
            (Resumable::Yes, Some(_)) => {
                "its last run stopped in the middle: /resume goes on with it".to_owned()
            }
            (Resumable::Yes, None) => {
                format!("its last turn is {status}: /resume goes on, a message begins another one")
            }
            (Resumable::Waiting, _) => {
                "its last turn waits for people: /resume goes on once they have answered".to_owned()
            }
            (_, _) => format!("its last turn is {status}"),
        };
        aside(self.screen, &format!("session {session}: {told}"))
    }

    /// Whether the session has something to go on with.
    pub(super) async fn is_open(&self) -> Result<bool> {
        let Some(session) = &self.session else { return Ok(false) };
        Ok(self.runtime.can_resume(session).await? != Resumable::Ended)
    }

    /// Says where the session is found again.
    pub(super) fn part(&self) {
        if let Some(session) = &self.session {
            let again = summary::command("chat --session", session, self.db);
            notice(&format!("the session is kept; to go on: {again}"));
        }
    }

    /// A turn that answers a message.
    pub(super) async fn turn(&mut self, message: String) -> Result<Exit> {
        let began = Instant::now();
        if message.len() > MOST {
            return Err(unusable(format!("a message may have at most {MOST} bytes")));
        }
        let mut options = ExecuteOptions::default();
        options.tags = self.cast.tags();
        options.session.clone_from(&self.session);
        let before = self.usage().await?;
        let agent = Arc::clone(self.cast.agent());
        let started = self.runtime.execute(agent, message.into(), options).await;
        let handle = started.map_err(|error| match error.code() {
            ErrorCode::AlreadyRunning => unusable(
                "the last run may still be alive in another process; /resume waits until it counts \
                 as dead and goes on with it, then say it again",
            ),
            ErrorCode::RunUnfinished => unusable(
                "the last run stopped in the middle; /resume goes on with it, then say it again",
            ),
            ErrorCode::Suspended => unusable(
                "the last turn waits for people; /resume goes on with it once they have answered",
            ),
            _ => error.into(),
        })?;
        self.session = Some(handle.session().clone());
        let (person, stage) = (Person::default(), self.stage(began));
        drive::turn(&self.runtime, self.cast.agent(), handle, person, stage, before).await
    }

    /// Goes on with what was interrupted, failed or killed.
    pub(super) async fn resume(&self, signals: &mut Signals) -> Result<Then> {
        let began = Instant::now();
        let Some(session) = &self.session else {
            return Err(unusable(
                "there is no session yet; /resume SESSION goes on with another one",
            ));
        };
        let head = storage::head(self.store, session.as_str()).await?;
        for told in waits::told(&head, self.store).await? {
            aside(self.screen, &told)?;
        }
        let before = self.usage().await?;
        if self.runtime.can_resume(session).await? == Resumable::Waiting {
            return self.resume_waiting(session, before, began, signals).await;
        }
        let agent = Arc::clone(self.cast.agent());
        let resumed = self.runtime.resume(agent, session, cast::patiently());
        let handle = tokio::select! {
            handle = resumed => handle?,
            signal = signals.next() => return Ok(stopped_by(signal)),
        };
        let (person, stage) = (Person::default(), self.stage(began));
        drive::turn(&self.runtime, self.cast.agent(), handle, person, stage, before)
            .await
            .map(Continue)
    }

    /// Asks for what the last turn waits for, and goes on with it; tells of it if nobody is there.
    async fn resume_waiting(
        &self,
        session: &SessionId,
        before: Usage,
        began: Instant,
        signals: &mut Signals,
    ) -> Result<Then> {
        let handle = self.runtime.handle(session).await?;
        let ended = Ended::new(handle.result().await?, &self.runtime, &handle).await?;
        let mut person = Person::default();
        let stage = self.stage(began);
        if self.asks && person.answers(&self.runtime, &ended.waiting, self.db, signals).await? {
            let agent = Arc::clone(self.cast.agent());
            let handle = self.runtime.resume(agent, session, cast::patiently()).await?;
            let turn = drive::turn(&self.runtime, self.cast.agent(), handle, person, stage, before);
            return turn.await.map(Continue);
        }
        let turn = Turn { before, said: true };
        summary::show_turn(&handle, &ended, turn, stage).await.map(Continue)
    }

    /// The tokens of the session so far.
    async fn usage(&self) -> Result<Usage> {
        let Some(session) = &self.session else { return Ok(Usage::default()) };
        Ok(load(self.store, session).await?.usage())
    }

    fn stage(&self, began: Instant) -> Stage<'_> {
        let model = self.cast.model().name();
        Stage { screen: self.screen, db: self.db, model, began: Some(began), asks: self.asks }
    }
}

/// Whether the chat goes on behind an entry or ends, and what has come of it.
pub(super) type Then = ControlFlow<Exit, Exit>;

/// What a signal means that came instead of what a command waited for: Ctrl-C is for the command,
/// everything else for the program.
pub(super) fn stopped_by(signal: Signal) -> Then {
    match signal {
        Signal::Interrupt => Continue(Exit::Interrupted),
        Signal::Terminate => Break(Exit::Interrupted),
    }
}

/// An entry that cannot be used, and why.
pub(super) fn unusable(why: impl Into<String>) -> anyhow::Error {
    Error::new(ErrorCode::InputInvalid, why.into()).into()
}
