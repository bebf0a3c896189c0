//! `helix resume`: resumes a session that was interrupted, failed or answered, or whose process crashed.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use helix_agents::client::Client;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{Resumable, ResumeOptions};
use helix_agents::id::SessionId;
use helix_agents::store::{Head, SessionStatus};
use helix_agents::terminal::{Screen, notice};

use crate::approver::{self, Approver};
use crate::checkpoint;
use crate::drive;
use crate::executor::Executor;
use crate::exit::Exit;
use crate::lease_wait;
use crate::location::Location;
use crate::model::is_script;
use crate::place::{Access, Place};
use crate::run_view::RunView;
use crate::session_agent::{self, Overrides, SessionAgent};
use crate::signals::Signals;
use crate::summary::{self, EndedRun};
use crate::which::Which;

/// The options of `helix resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    which: Which,
    /// Append a line of JSON to this file whenever a tool starts. Only for sessions of `helix demo`. Default: the
    /// file that was given to `helix demo --trace`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The agent file. Default: the one that the session was created with.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// The model, as `provider:model`. Default: the one that the session was created with.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
    /// The folder that the agent's file tools may access. Default: the session's folder.
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Rewind to this checkpoint first, as `helix sessions checkpoints` shows it. Later events stay in
    /// the log but leave the conversation. Version 0 is the start of the session and needs `--message`.
    #[arg(long, value_name = "VERSION")]
    checkpoint: Option<u64>,
    /// Continue with a message to the agent.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    message: Option<String>,
    /// Do not ask for approvals at the terminal; use `helix approvals` to answer.
    #[arg(long)]
    no_input: bool,
}

/// The options of a resume.
#[derive(Debug, Clone, Copy, Default)]
struct ResumeRequest<'a> {
    overrides: Overrides<'a>,
    checkpoint: Option<u64>,
    message: Option<&'a str>,
    no_input: bool,
}

/// Runs the command.
pub(crate) async fn run(args: ResumeArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let place = Place::open(db, Access::Write).await?;
    let exit = resume(&args, &place, db, screen).await;
    place.close().await;
    exit
}

/// Resumes a session after an answer, with its recorded agent and model.
pub(crate) async fn session(
    session: &SessionId,
    place: &Place,
    db: &Location,
    screen: &Screen,
) -> Result<Exit> {
    let head = place.head(session.as_str()).await?;
    resume_with(&head, ResumeRequest::default(), place, db, screen).await
}

async fn resume(args: &ResumeArgs, place: &Place, db: &Location, screen: &Screen) -> Result<Exit> {
    let head = args.which.head(place).await?;
    resume_with(&head, args.request(), place, db, screen).await
}

async fn resume_with(
    head: &Head,
    request: ResumeRequest<'_>,
    place: &Place,
    db: &Location,
    screen: &Screen,
) -> Result<Exit> {
    let started = Instant::now();
    if let Some(version) = request.checkpoint {
        // Fails early, before waiting for a lease. A server checks the version itself.
        let checked = place.check_rewind_target(&head.session, version).await;
        checked.map_err(|error| checkpoint::with_hint(error, &head.session, db))?;
    }
    // A checkpoint or a message starts something new, even in a completed session.
    let is_plain = request.checkpoint.is_none() && request.message.is_none();
    if is_plain && matches!(head.summary.status, SessionStatus::Completed | SessionStatus::Aborted)
    {
        if !screen.is_json() {
            let status = head.summary.status;
            notice(&format!("session {} is {status}: there is nothing to resume", head.session));
        }
        return show_status(head, place, db, screen).await;
    }
    let interactive = approver::is_possible(screen, request.no_input);
    let mut approver = Approver::default();
    if is_plain
        && place.can_resume(&head.session).await? == Resumable::Waiting
        && !(interactive && is_answered(&mut approver, place, head, db).await?)
    {
        return show_status(head, place, db, screen).await;
    }
    let store = match place {
        Place::Store { store, .. } => store,
        Place::Server(client) => {
            let executor = remote_executor(client, head, request.overrides)?;
            let handle = executor.resume(&head.session, request.options()).await?;
            let run_view = RunView { screen, db, model: None, started: Some(started), interactive };
            return drive::run_to_end(&executor, handle, approver, run_view, "").await;
        }
    };
    let session_agent = SessionAgent::of_session(head, request.overrides).await?;
    let executor = Executor::local(&session_agent, place)?;
    let model = session_agent.model().name();
    session_agent.show_warnings(screen);
    if !screen.is_json() {
        if is_script(model) {
            notice("The session was created with the built-in script, which is used again.");
        }
        lease_wait::messages(head, store).await?.iter().for_each(|message| notice(message));
    }
    let handle = executor.resume(&head.session, request.options()).await?;
    let run_view = RunView { screen, db, model: Some(model), started: Some(started), interactive };
    drive::run_to_end(&executor, handle, approver, run_view, "").await
}

/// Returns the executor of a session at a server.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if the command line changes the agent.
fn remote_executor(client: &Client, head: &Head, overrides: Overrides<'_>) -> Result<Executor> {
    if !overrides.is_empty() {
        let message = "the server determines the agent of the session; omit --agent, --model, --files and --trace";
        return Err(Error::new(ErrorCode::InputInvalid, message).into());
    }
    Ok(Executor::remote(client, &head.created.agent))
}

/// Asks the user at the terminal about the pending calls. Returns `true` if one of them was settled.
async fn is_answered(
    approver: &mut Approver,
    place: &Place,
    head: &Head,
    db: &Location,
) -> Result<bool> {
    let handle = place.handle(&head.session).await?;
    let ended = EndedRun::new(handle.result().await?, place, &handle).await?;
    let mut signals = Signals::listen()?;
    approver.ask_all(place, &ended.waiting, db, &mut signals).await
}

/// Shows the result or the pending calls of a session. It needs neither its agent nor its model.
async fn show_status(head: &Head, place: &Place, db: &Location, screen: &Screen) -> Result<Exit> {
    let handle = place.handle(&head.session).await?;
    let ended = EndedRun::new(handle.result().await?, place, &handle).await?;
    let model = place.model(head).await?;
    let model = model.as_deref();
    summary::show(&handle, &ended, RunView { screen, db, model, started: None, interactive: false })
}

impl ResumeArgs {
    fn request(&self) -> ResumeRequest<'_> {
        let overrides = Overrides {
            model: self.model.as_deref(),
            agent: self.agent.as_deref(),
            files: self.files.as_deref(),
            trace: self.trace.as_deref(),
        };
        let message = self.message.as_deref();
        ResumeRequest { overrides, checkpoint: self.checkpoint, message, no_input: self.no_input }
    }
}

impl ResumeRequest<'_> {
    fn options(self) -> ResumeOptions {
        let mut options = session_agent::wait_for_lease();
        if let Some(version) = self.checkpoint {
            options = options.checkpoint(version);
        }
        match self.message {
            Some(message) => options.message(message),
            None => options,
        }
    }
}
