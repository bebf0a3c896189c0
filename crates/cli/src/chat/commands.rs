//! The slash commands of the chat.

use std::ops::ControlFlow::Continue;

use anyhow::Result;
use helix_agents::id::SessionId;
use helix_agents::store::{Page, SessionFilter};
use serde_json::json;

use super::agent::ChatAgent;
use super::conversation::{Conversation, Flow, stopped_by, unusable};
use super::entry::{self, Command};
use crate::exit::Exit;
use crate::model::Model;
use crate::session_agent::Overrides;
use crate::sessions::{list, log};
use crate::signals::Signals;

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
            (Command::Log, _) => log::show(self.session()?, 0, self.place, self.screen).await?,
            (Command::Sessions, _) => {
                let page = Page { after: None, limit: LISTED };
                list::show(&SessionFilter::new(), &page, self.place, self.screen).await?;
            }
            (Command::State, _) => self.show_state().await?,
            (Command::Model, None) if self.screen.is_json() => self.show_model_as_json()?,
            (Command::Model, None) => match self.agent.model() {
                Some(model) => self.screen.line(model)?,
                None => self.screen.line("the server chooses the model")?,
            },
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
        let head = self.place.head(session).await?;
        let agent = tokio::select! {
            agent = ChatAgent::of_session(self.place, &head, Overrides::default()) => agent?,
            signal = signals.next() => return Ok(stopped_by(signal)),
        };
        self.set_agent(agent)?;
        self.file = None;
        self.session = Some(head.session.clone());
        self.agent.show_warnings(self.screen);
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
        let agent = match &self.session {
            Some(session) => {
                let head = self.place.head(session.as_str()).await?;
                ChatAgent::of_session(self.place, &head, overrides).await?
            }
            None => ChatAgent::of_conversation(self.place, overrides).await?,
        };
        self.set_agent(agent)?;
        if self.screen.is_json() {
            return self.show_model_as_json();
        }
        match self.agent.model() {
            Some(model) => Ok(self.screen.note(&format!("model: {model}"))?),
            None => Ok(()),
        }
    }

    fn show_model_as_json(&self) -> Result<()> {
        Ok(self.screen.json(&json!({ "model": self.agent.model().map(Model::name) }))?)
    }

    async fn show_state(&self) -> Result<()> {
        let state = self.place.state(self.session()?).await?;
        if self.screen.is_json() {
            self.screen.json(&*state)?;
        } else if state.is_null() {
            self.screen.line("the agent has no custom state")?;
        } else {
            self.screen.line(serde_json::to_string_pretty(&*state)?)?;
        }
        Ok(())
    }
}
