//! `helix approvals approve`, `deny`, `edit` and `answer`.

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::event::PendingKind;
use helix_agents::executor::AgentExecutor as _;
use helix_agents::id::SessionId;
use helix_agents::session::Submission;
use serde_json::json;

use super::call::{Named, WhichCall, below};
use crate::cast;
use crate::edit::{self, Edited};
use crate::env;
use crate::given;
use crate::screen::Screen;
use crate::storage;
use crate::store::Store;
use crate::summary;
use crate::text::{count, quoted};

/// The store that records an answer and the screen that reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) store: &'a Store,
    pub(super) db: &'a Path,
    pub(super) screen: &'a Screen,
}

/// The options that all answers have in common.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    which: WhichCall,
    /// Answer only if the arguments still have this digest, as shown by `helix approvals show`.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// The name of the approver that the log records. Default: the name of the user.
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// Resume the session immediately.
    #[arg(long)]
    resume: bool,
}

/// The options of `helix approvals approve`.
#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    common: Common,
}

/// The options of `helix approvals deny`.
#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    common: Common,
    /// The reason; the model sees it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The options of `helix approvals edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    common: Common,
    /// The new arguments, as JSON; `-` reads them from standard input. Without it an editor opens.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    arguments: Option<String>,
}

/// The options of `helix approvals answer`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").args(["result", "error"]).required(true))]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    common: Common,
    /// The result, as JSON; `-` reads it from standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    result: Option<String>,
    /// The error message if the tool failed; the model sees it.
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

impl ApproveArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let answer = Submission::approve(named.call.clone());
        self.common.submit(&named, answer, "approved", desk).await
    }
}

impl DenyArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let answer = Submission::deny(named.call.clone(), self.reason);
        self.common.submit(&named, answer, "denied", desk).await
    }
}

impl AnswerArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let call = named.call.clone();
        let (answer, label) = match (&self.result, self.error) {
            (Some(result), _) => {
                (Submission::result(call, &given::json(result, "the result")?)?, "answered")
            }
            (None, error) => (Submission::error(call, error.unwrap_or_default()), "failed"),
        };
        self.common.submit(&named, answer, label, desk).await
    }
}

impl EditArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let call = named.call.clone();
        if let Some(arguments) = &self.arguments {
            let arguments = given::json(arguments, "the arguments")?;
            let answer = Submission::approve_edited(call, &arguments)?;
            return self.common.submit(&named, answer, "approved with changed arguments", desk).await;
        }
        let waiting = named.waiting(desk.store).await?;
        // Fails before the editor opens, so that the user does not write something that is rejected.
        if waiting.view.pending.kind != (PendingKind::Approval { editable: true }) {
            let message = "the arguments of the call are not editable";
            let error = Error::new(ErrorCode::AnswerInvalid, message);
            return Err(error.with_context("call", &waiting.reference).into());
        }
        let seen = waiting.view.arguments.to_value();
        let edited = match edit::json(&seen).await? {
            Edited::Changed(edited) => edited,
            Edited::Unchanged => {
                let approve = waiting.command("approve", desk.db);
                let message = format!(
                    "the arguments are unchanged, so nothing was approved; to approve the call \
                     unchanged: {approve}"
                );
                return Err(Error::new(ErrorCode::InputInvalid, message).into());
            }
        };
        let answer = Submission::approve_edited(call, &edited.value)?
            .digest(waiting.view.pending.digest.clone());
        let label = "approved with changed arguments";
        match self.common.submit(&named, answer, label, desk).await {
            // Keeps the text that the user wrote.
            Err(error) => {
                let again = waiting.command("edit", desk.db);
                let kept = edited.keep()?;
                let kept = kept.display().to_string();
                Err(error.context(format!(
                    "your edit was saved; to use it: {again} --arguments - < {}",
                    quoted(&kept)
                )))
            }
            done => done,
        }
    }
}

impl Common {
    async fn submit(
        self,
        named: &Named,
        mut answer: Submission,
        label: &str,
        desk: &Desk<'_>,
    ) -> Result<Option<SessionId>> {
        let Desk { store, db, screen } = *desk;
        if let Some(by) = self.by.or_else(user) {
            answer = answer.by(by);
        }
        if let Some(digest) = self.digest {
            answer = answer.digest(digest);
        }
        let resume = summary::resume_root(&named.root, store, db).await?;
        if self.resume && resume.is_none() {
            // Fails before anything is recorded.
            return Err(cast::not_ours(&storage::head(store, named.root.as_str()).await?).into());
        }
        let runtime = cast::spectator(store.clone())?;
        runtime.submit_tool_result(&named.root, answer).await?;
        let left = below(store, &named.root).await.context("the answer was recorded, but")?.len();
        if screen.is_json() && !self.resume {
            screen.json(&json!({
                "root": named.root,
                "call": named.call.to_string(),
                "answer": label,
                "waiting": left,
                "resume_command": resume,
            }))?;
        } else if !screen.is_json() {
            screen.line(format!("{label}: {}", crate::text::one_line(&named.call.to_string())))?;
            if left > 0 {
                let still = count(left as u64, "other call");
                let wait = if left == 1 { "waits" } else { "wait" };
                screen.line(format!("{still} of the session still {wait}"))?;
            }
            if !self.resume {
                screen.field("go on", resume.as_deref().unwrap_or(summary::ELSEWHERE))?;
            }
        }
        Ok(self.resume.then(|| named.root.clone()))
    }
}

/// The name of the current user.
pub(crate) fn user() -> Option<String> {
    env::USER.text()
}
