//! The slash commands of the chat.

use std::ops::ControlFlow::Continue;

use anyhow::Result;
use helix_agents::id::SessionId;
use helix_agents::session::load;
use helix_agents::store::Page;
use serde_json::json;

use super::conversation::{Conversation, Flow, stopped_by, unusable};
use super::entry::{self, Command};
use crate::exit::Exit;
use crate::session_agent::{Overrides, SessionAgent};
use crate::sessions::{list, log};
use crate::signals::Signals;
use crate::storage;

/// The number of sessions that `/sessions` lists.
const LISTED: u32 = 20;

impl Conversation<'_> {
    /// Executes a command.
    pub(super) async fn command(
        &mut self,
        command: Command,
        argument: Option<&str>,
        signals: &mut Signals,
    ) -> Result<Flow> {
        match (command, argument) {
            (Command::Help, _) if self.screen.is_json() => {
                self.screen.json(&entry::help_as_json())?
            }
            (Command::Help, _) => self.screen.line(entry::help())?,
            (Command::Resume, None) => return self.resume(signals).await,
            (Command::Resume, Some(session)) => return self.switch(session, signals).await,
            (Command::Log, _) => log::show(self.session()?, 0, self.store, self.screen).await?,
            (Command::Sessions, _) => {
                let page = Page { after: None, limit: LISTED };
                list::show(page, self.store, self.screen).await?;
            }
            (Command::State, _) => self.show_state().await?,
            (Command::Model, None) if self.screen.is_json() => self.show_model_as_json()?,
            (Command::Model, None) => self.screen.line(self.session_agent.model())?,
            (Command::Model, Some(model)) => {
                // A model server may respond slowly.
                tokio::select! {
                    biased;
                    chosen = self.choose(model) => chosen?,
                    signal = signals.next() => return Ok(stopped_by(signal)),
                }
            }
            (Command::New, _) => {
                self.session = None;
                self.screen.note("the next message starts a new session")?;
            }
            (Command::Quit, _) => {}
        }
        Ok(Continue(Exit::Completed))
    }

    fn session(&self) -> Result<&SessionId> {
        self.session
            .as_ref()
            .ok_or_else(|| unusable("there is no session yet: send a message first"))
    }

    /// Switches to another session and resumes its unfinished run.
    async fn switch(&mut self, session: &str, signals: &mut Signals) -> Result<Flow> {
        let head = storage::head(self.store, session).await?;
        let session_agent = tokio::select! {
            session_agent = SessionAgent::of_session(&head, Overrides::default()) => session_agent?,
            signal = signals.next() => return Ok(stopped_by(signal)),
        };
        self.set_agent(session_agent)?;
        self.file = None;
        self.session = Some(head.session.clone());
        self.session_agent.show_warnings(self.screen);
        self.show_status().await?;
        if self.is_open().await? {
            return self.resume(signals).await;
        }
        Ok(Continue(Exit::Completed))
    }

    /// Changes the model of the conversation.
    async fn choose(&mut self, model: &str) -> Result<()> {
        let agent = self.file.as_deref();
        let overrides = Overrides { model: Some(model), agent, ..Overrides::default() };
        let session_agent = match &self.session {
            Some(session) => {
                let head = storage::head(self.store, session.as_str()).await?;
                SessionAgent::of_session(&head, overrides).await?
            }
            None => SessionAgent::of_conversation(overrides).await?,
        };
        self.set_agent(session_agent)?;
        if self.screen.is_json() {
            return self.show_model_as_json();
        }
        Ok(self.screen.note(&format!("model: {}", self.session_agent.model()))?)
    }

    fn show_model_as_json(&self) -> Result<()> {
        Ok(self.screen.json(&json!({ "model": self.session_agent.model().name() }))?)
    }

    async fn show_state(&self) -> Result<()> {
        let fold = load(self.store, self.session()?).await?;
        if self.screen.is_json() {
            self.screen.json(&**fold.state())?;
        } else if fold.state().is_null() {
            self.screen.line("the agent has no custom state")?;
        } else {
            self.screen.line(serde_json::to_string_pretty(&**fold.state())?)?;
        }
        Ok(())
    }
}
