//! `helix resume`: goes on with a session that was interrupted, failed, or whose process died.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use helix_agents::executor::AgentExecutor as _;
use helix_agents::prelude::SqliteStore;
use helix_agents::store::{Head, SessionStatus};

use crate::cast::{self, Cast, LEASE, Wishes};
use crate::drive;
use crate::exit::Exit;
use crate::model::is_script;
use crate::screen::{Screen, notice};
use crate::stage::Stage;
use crate::storage::{self, Which};
use crate::summary;

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
}

/// Runs the command.
pub(crate) async fn run(args: ResumeArgs, db: &Path, screen: &Screen) -> Result<Exit> {
    let store = storage::open(db).await?;
    let exit = go_on(&args, &store, db, screen).await;
    storage::close(&store).await;
    exit
}

async fn go_on(args: &ResumeArgs, store: &SqliteStore, db: &Path, screen: &Screen) -> Result<Exit> {
    let began = Instant::now();
    let head = args.which.head(store).await?;
    if matches!(head.summary.status, SessionStatus::Completed | SessionStatus::Aborted) {
        return show_ended(&head, store, db, screen).await;
    }
    let cast = Cast::of_session(&head, args.wishes()).await?;
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
    let stage = Stage { screen, db, model, began: Some(began) };
    drive::to_the_end(&runtime, &handle, stage, "").await
}

/// Shows what came of a session that has ended. Neither its agent nor its model has to be there.
async fn show_ended(head: &Head, store: &SqliteStore, db: &Path, screen: &Screen) -> Result<Exit> {
    let handle = cast::spectator(store.clone())?.handle(&head.session).await?;
    if !screen.is_json() {
        let status = head.summary.status;
        notice(&format!("session {} is {status}: there is nothing to resume", head.session));
    }
    let result = handle.result().await?;
    let model = head.created.tags.get(cast::MODEL).map_or("not recorded", String::as_str);
    summary::show(&handle, &result, Stage { screen, db, model, began: None }).await
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
