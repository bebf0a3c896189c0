//! `helix resume`: goes on with a session that was interrupted, failed, was answered, or whose
//! process died.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use helix_agents::executor::{AgentExecutor as _, Resumable};
use helix_agents::id::SessionId;
use helix_agents::prelude::{LocalRuntime, SqliteStore};
use helix_agents::store::{Head, SessionStatus};

use crate::ask::{self, Person};
use crate::cast::{self, Cast, LEASE, Wishes};
use crate::drive;
use crate::exit::Exit;
use crate::model::is_script;
use crate::screen::{Screen, notice};
use crate::signals::Signals;
use crate::stage::Stage;
use crate::storage::{self, Which};
use crate::summary::{self, Ended};

/// The options of `helix resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    which: Which,
    /// Add one line of JSON to this file at each start of a tool. Default: the session's own.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The agent file. Default: the one that the session was begun from.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// The model, as `provider:model`. Default: the one that the session was begun with.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
    /// Let the agent's file tools see this folder. Default: as when the session was begun.
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Do not ask at the terminal what the run waits for; `helix approvals` answers.
    #[arg(long)]
    no_input: bool,
}

/// Runs the command.
pub(crate) async fn run(args: ResumeArgs, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = storage::open(db).await?;
    let exit = go_on(&args, &store, db, screen).await;
    storage::close(&store).await;
    exit
}

/// Goes on with a session after an answer, as it was begun.
pub(crate) async fn session(
    session: &SessionId,
    store: &SqliteStore,
    db: &Path,
    screen: &Screen,
) -> Result<Exit> {
    let head = storage::head(store, session.as_str()).await?;
    go_on_with(&head, Wishes::default(), store, db, screen, false).await
}

async fn go_on(args: &ResumeArgs, store: &SqliteStore, db: &Path, screen: &Screen) -> Result<Exit> {
    let head = args.which.head(store).await?;
    go_on_with(&head, args.wishes(), store, db, screen, args.no_input).await
}

async fn go_on_with(
    head: &Head,
    wishes: Wishes<'_>,
    store: &SqliteStore,
    db: &Path,
    screen: &Screen,
    no_input: bool,
) -> Result<Exit> {
    let began = Instant::now();
    if matches!(head.summary.status, SessionStatus::Completed | SessionStatus::Aborted) {
        if !screen.is_json() {
            let status = head.summary.status;
            notice(&format!("session {} is {status}: there is nothing to resume", head.session));
        }
        return show_as_it_is(head, store, db, screen).await;
    }
    let asks = ask::is_possible(screen, no_input);
    let spectator = cast::spectator(store.clone())?;
    let mut person = Person::default();
    if spectator.can_resume(&head.session).await? == Resumable::Waiting
        && !(asks && is_answered(&mut person, &spectator, head, db).await?)
    {
        return show_as_it_is(head, store, db, screen).await;
    }
    let cast = Cast::of_session(head, wishes).await?;
    let runtime = cast.runtime(store.clone())?;
    let model = cast.model().name();
    cast.tell_remarks(screen);
    if !screen.is_json() {
        if is_script(model) {
            notice(
                "The session was begun with the built-in script, which goes on to play the model.",
            );
        }
        if head.is_leased() {
            notice(&format!(
                "The process of the last run may still live: waiting for up to {} s until it counts \
                 as dead.",
                LEASE.as_secs()
            ));
        }
    }
    let agent = Arc::clone(cast.agent());
    let handle = runtime.resume(agent, &head.session, cast::patiently()).await?;
    let stage = Stage { screen, db, model, began: Some(began), asks };
    drive::to_the_end(&runtime, cast.agent(), handle, person, stage, "").await
}

/// Asks the person at the terminal for what the session waits for.
async fn is_answered(
    person: &mut Person,
    runtime: &LocalRuntime,
    head: &Head,
    db: &Path,
) -> Result<bool> {
    let handle = runtime.handle(&head.session).await?;
    let ended = Ended::new(handle.result().await?, runtime, &handle).await?;
    let mut signals = Signals::listen()?;
    person.answers(runtime, &ended.waiting, db, &mut signals).await
}

/// Shows what came of a session, or what it waits for. Neither its agent nor its model has to be
/// there.
async fn show_as_it_is(
    head: &Head,
    store: &SqliteStore,
    db: &Path,
    screen: &Screen,
) -> Result<Exit> {
    let runtime = cast::spectator(store.clone())?;
    let handle = runtime.handle(&head.session).await?;
    let ended = Ended::new(handle.result().await?, &runtime, &handle).await?;
    let model = head.created.tags.get(cast::MODEL).map_or("not recorded", String::as_str);
    summary::show(&handle, &ended, Stage { screen, db, model, began: None, asks: false }).await
}

impl ResumeArgs {
    fn wishes(&self) -> Wishes<'_> {
        Wishes {
            model: self.model.as_deref(),
            agent: self.agent.as_deref(),
            files: self.files.as_deref(),
            trace: self.trace.as_deref(),
        }
    }
}
