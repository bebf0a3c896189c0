//! `helix approvals approve`, `deny`, `edit` and `answer`.

use anyhow::{Context as _, Result};
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::event::PendingKind;
use helix_agents::id::SessionId;
use helix_agents::session::Submission;
use helix_agents::terminal::Screen;
use serde_json::json;

use super::call::{NamedCall, WhichCall};
use crate::edit::{self, Edited};
use crate::env;
use crate::follow_up;
use crate::input;
use crate::location::Location;
use crate::place::Place;
use crate::session_agent;
use crate::text::{count, quoted};

/// The place that records an answer and the screen that reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerContext<'a> {
    pub(super) place: &'a Place,
    pub(super) db: &'a Location,
    pub(super) screen: &'a Screen,
}

/// The options that all answers have in common.
#[derive(Debug, Args)]
struct CommonArgs {
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
    common: CommonArgs,
}

/// The options of `helix approvals deny`.
#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The reason; the model sees it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The options of `helix approvals edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The new arguments, as JSON; `-` reads them from standard input. Without it an editor opens.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    arguments: Option<String>,
}

/// The options of `helix approvals answer`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").args(["result", "error"]).required(true))]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The result, as JSON; `-` reads it from standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    result: Option<String>,
    /// The error message if the tool failed; the model sees it.
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

impl ApproveArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, cx: &AnswerContext<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(cx.place).await?;
        let answer = Submission::approve(named.call.clone());
        self.common.submit(&named, answer, "approved", cx).await
    }
}

impl DenyArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, cx: &AnswerContext<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(cx.place).await?;
        let answer = Submission::deny(named.call.clone(), self.reason);
        self.common.submit(&named, answer, "denied", cx).await
    }
}

impl AnswerArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, cx: &AnswerContext<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(cx.place).await?;
        let call = named.call.clone();
        let (answer, label) = match (&self.result, self.error) {
            (Some(result), _) => {
                (Submission::result(call, &input::json(result, "the result")?)?, "answered")
            }
            (None, error) => (Submission::error(call, error.unwrap_or_default()), "failed"),
        };
        self.common.submit(&named, answer, label, cx).await
    }
}

impl EditArgs {
    /// Runs the command. Returns the session to resume, if any.
    pub(super) async fn run(self, cx: &AnswerContext<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(cx.place).await?;
        let call = named.call.clone();
        if let Some(arguments) = &self.arguments {
            let arguments = input::json(arguments, "the arguments")?;
            let answer = Submission::approve_edited(call, &arguments)?;
            return self.common.submit(&named, answer, "approved with changed arguments", cx).await;
        }
        let waiting = named.pending(cx.place).await?;
        // Fails before the editor opens, so that the user does not write something that is rejected.
        if waiting.pending.kind != (PendingKind::Approval { editable: true }) {
            let message = "the arguments of the call are not editable";
            let error = Error::new(ErrorCode::AnswerInvalid, message);
            return Err(error.with_context("call", waiting.reference()).into());
        }
        let seen = waiting.arguments.to_value();
        let edited = match edit::json(&seen).await? {
            Edited::Changed(edited) => edited,
            Edited::Unchanged => {
                let approve = follow_up::answer("approve", &waiting.reference(), cx.db);
                let message = format!(
                    "the arguments are unchanged, so nothing was approved; to approve the call \
                     unchanged: {approve}"
                );
                return Err(Error::new(ErrorCode::InputInvalid, message).into());
            }
        };
        let answer =
            Submission::approve_edited(call, &edited.value)?.digest(waiting.pending.digest.clone());
        let label = "approved with changed arguments";
        match self.common.submit(&named, answer, label, cx).await {
            // Keeps the text that the user wrote.
            Err(error) => {
                let again = follow_up::answer("edit", &waiting.reference(), cx.db);
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

impl CommonArgs {
    async fn submit(
        self,
        named: &NamedCall,
        mut answer: Submission,
        label: &str,
        cx: &AnswerContext<'_>,
    ) -> Result<Option<SessionId>> {
        let AnswerContext { place, db, screen } = *cx;
        if let Some(by) = self.by.or_else(user) {
            answer = answer.by(by);
        }
        if let Some(digest) = self.digest {
            answer = answer.digest(digest);
        }
        let resume = follow_up::resume_root(&named.root, place, db).await?;
        if self.resume && resume.is_none() {
            // Fails before anything is recorded.
            return Err(session_agent::unsupported_session(
                &place.head(named.root.as_str()).await?,
            )
            .into());
        }
        place.submit(&named.root, answer).await?;
        let left = place.pending_calls(&named.root).await;
        let left = left
            .context("the answer was recorded, but the remaining calls could not be listed")?
            .len();
        if screen.is_json() && !self.resume {
            screen.json(&json!({
                "root": named.root,
                "call": named.call.to_string(),
                "answer": label,
                "waiting": left,
                "resume_command": resume,
            }))?;
        } else if !screen.is_json() {
            screen.line(format!("{}: {label}", crate::text::one_line(&named.call.to_string())))?;
            if left > 0 {
                let still = count(left as u64, "other call");
                let wait = if left == 1 { "waits" } else { "wait" };
                screen.line(format!("{still} of the session still {wait}"))?;
            }
            if !self.resume {
                screen.field("resume", resume.as_deref().unwrap_or(follow_up::ELSEWHERE))?;
            }
        }
        Ok(self.resume.then(|| named.root.clone()))
    }
}

/// The name of the current user.
pub(crate) fn user() -> Option<String> {
    env::USER.text()
}
