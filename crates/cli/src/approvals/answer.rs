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

/// Where answers are recorded and told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) store: &'a Store,
    pub(super) db: &'a Path,
    pub(super) screen: &'a Screen,
}

/// What every answer can say beside itself.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    which: WhichCall,
    /// Only if this still is the digest of the arguments, as `helix approvals show` tells it.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Who answers, for people who read the log. Default: the name of the user.
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// Go on with the session at once.
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
    /// Why; the model reads it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// The options of `helix approvals edit`.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    #[command(flatten)]
    common: Common,
    /// The new arguments, as JSON; `-` reads them from standard input. Without this an editor opens.
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
    /// The tool failed; the model reads why.
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
}

impl ApproveArgs {
    /// Runs the command. Answers which session is to be resumed, if one is.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let answer = Submission::approve(named.call.clone());
        self.common.submit(&named, answer, "approved", desk).await
    }
}

impl DenyArgs {
    /// Runs the command, likewise.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let answer = Submission::deny(named.call.clone(), self.reason);
        self.common.submit(&named, answer, "denied", desk).await
    }
}

impl AnswerArgs {
    /// Runs the command, likewise.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let call = named.call.clone();
        let (answer, told) = match (&self.result, self.error) {
            (Some(result), _) => {
                (Submission::result(call, &given::json(result, "the result")?)?, "answered")
            }
            (None, error) => (Submission::error(call, error.unwrap_or_default()), "failed"),
        };
        self.common.submit(&named, answer, told, desk).await
    }
}

impl EditArgs {
    /// Runs the command, likewise.
    pub(super) async fn run(self, desk: &Desk<'_>) -> Result<Option<SessionId>> {
        let named = self.common.which.find(desk.store).await?;
        let call = named.call.clone();
        if let Some(arguments) = &self.arguments {
            let arguments = given::json(arguments, "the arguments")?;
            let answer = Submission::approve_edited(call, &arguments)?;
            return self.common.submit(&named, answer, "approved with other arguments", desk).await;
        }
        let waiting = named.waiting(desk.store).await?;
        // Nobody is to write what is refused afterwards.
        if waiting.view.pending.kind != (PendingKind::Approval { editable: true }) {
            let message = "the arguments of the call cannot be changed";
            let error = Error::new(ErrorCode::AnswerInvalid, message);
            return Err(error.with_context("call", &waiting.reference).into());
        }
        let seen = waiting.view.arguments.to_value();
        let edited = match edit::json(&seen).await? {
            Edited::Changed(edited) => edited,
            Edited::Unchanged => {
                let approve = waiting.command("approve", desk.db);
                let message = format!(
                    "the arguments are as they were, so nothing was approved; to approve them so: \
                     {approve}"
                );
                return Err(Error::new(ErrorCode::InputInvalid, message).into());
            }
        };
        let answer = Submission::approve_edited(call, &edited.value)?
            .digest(waiting.view.pending.digest.clone());
        let told = "approved with other arguments";
        match self.common.submit(&named, answer, told, desk).await {
            // What somebody has written is not thrown away.
            Err(error) => {
                let again = waiting.command("edit", desk.db);
                let kept = edited.keep()?;
                let kept = kept.display().to_string();
                Err(error.context(format!(
                    "what you wrote is kept; to use it: {again} --arguments - < {}",
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
        told: &str,
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
            // Before anything is recorded.
            return Err(cast::not_ours(&storage::head(store, named.root.as_str()).await?).into());
        }
        let runtime = cast::spectator(store.clone())?;
        runtime.submit_tool_result(&named.root, answer).await?;
        let left = below(store, &named.root).await.context("the answer is recorded, but")?.len();
        if screen.is_json() && !self.resume {
            screen.json(&json!({
                "root": named.root,
                "call": named.call.to_string(),
                "answer": told,
                "waiting": left,
                "resume_command": resume,
            }))?;
        } else if !screen.is_json() {
            screen.line(format!("{told}: {}", crate::text::one_line(&named.call.to_string())))?;
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

/// The name of whoever runs this.
pub(crate) fn user() -> Option<String> {
    env::USER.text()
}
