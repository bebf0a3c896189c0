//! `helix resume`: goes on with a session that was interrupted, failed, was answered, or whose
//! process died.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use helix_agents::executor::{AgentExecutor as _, Resumable, ResumeOptions};
use helix_agents::id::SessionId;
use helix_agents::prelude::LocalRuntime;
use helix_agents::session::load;
use helix_agents::store::{Head, SessionStatus};

use crate::ask::{self, Person};
use crate::cast::{self, Cast, Wishes};
use crate::checkpoint;
use crate::drive;
use crate::exit::Exit;
use crate::model::{self, is_script};
use crate::screen::{Screen, notice};
use crate::signals::Signals;
use crate::stage::Stage;
use crate::storage::{self, Which};
use crate::store::Store;
use crate::summary::{self, Ended};
use crate::waits;

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
    /// Go back to this checkpoint first, as `helix sessions checkpoints` shows it. What came after
    /// it stays in the log and leaves the conversation.
    #[arg(long, value_name = "VERSION")]
    from: Option<u64>,
    /// Go on with a message to the agent.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    message: Option<String>,
    /// Do not ask at the terminal what the run waits for; `helix approvals` answers.
    #[arg(long)]
    no_input: bool,
}

/// How to go on.
#[derive(Debug, Clone, Copy, Default)]
struct Way<'a> {
    wishes: Wishes<'a>,
    from: Option<u64>,
    message: Option<&'a str>,
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
    store: &Store,
    db: &Path,
    screen: &Screen,
) -> Result<Exit> {
    let head = storage::head(store, session.as_str()).await?;
    go_on_with(&head, Way::default(), store, db, screen).await
}

async fn go_on(args: &ResumeArgs, store: &Store, db: &Path, screen: &Screen) -> Result<Exit> {
    let head = args.which.head(store).await?;
    go_on_with(&head, args.way(), store, db, screen).await
}

async fn go_on_with(
    head: &Head,
    way: Way<'_>,
    store: &Store,
    db: &Path,
    screen: &Screen,
) -> Result<Exit> {
    let began = Instant::now();
    if let Some(version) = way.from {
        // Before anything is waited for.
        let session = load(store, &head.session).await?;
        let found = session.checkpoint(version).map(|_| ());
        found.map_err(|error| checkpoint::told(error, &head.session, db))?;
    }
    // Whoever says more than to go on wants something new.
    let only_goes_on = way.from.is_none() && way.message.is_none();
    if only_goes_on
        && matches!(head.summary.status, SessionStatus::Completed | SessionStatus::Aborted)
    {
        if !screen.is_json() {
            let status = head.summary.status;
            notice(&format!("session {} is {status}: there is nothing to resume", head.session));
        }
        return show_as_it_is(head, store, db, screen).await;
    }
    let asks = ask::is_possible(screen, way.no_input);
    let spectator = cast::spectator(store.clone())?;
    let mut person = Person::default();
    if only_goes_on
        && spectator.can_resume(&head.session).await? == Resumable::Waiting
        && !(asks && is_answered(&mut person, &spectator, head, db).await?)
    {
        return show_as_it_is(head, store, db, screen).await;
    }
    let cast = Cast::of_session(head, way.wishes).await?;
    let runtime = cast.runtime(store.clone())?;
    let model = cast.model().name();
    cast.tell_remarks(screen);
    if !screen.is_json() {
        if is_script(model) {
            notice(
                "The session was begun with the built-in script, which goes on to play the model.",
            );
        }
        waits::told(head, store).await?.iter().for_each(|told| notice(told));
    }
    let agent = Arc::clone(cast.agent());
    let handle = runtime.resume(agent, &head.session, way.options()).await?;
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
async fn show_as_it_is(head: &Head, store: &Store, db: &Path, screen: &Screen) -> Result<Exit> {
    let runtime = cast::spectator(store.clone())?;
    let handle = runtime.handle(&head.session).await?;
    let ended = Ended::new(handle.result().await?, &runtime, &handle).await?;
    let model = model::of(head, store).await?;
    let model = model.as_deref().unwrap_or("not recorded");
    summary::show(&handle, &ended, Stage { screen, db, model, began: None, asks: false }).await
}

impl ResumeArgs {
    fn way(&self) -> Way<'_> {
        let wishes = Wishes {
            model: self.model.as_deref(),
            agent: self.agent.as_deref(),
            files: self.files.as_deref(),
            trace: self.trace.as_deref(),
        };
        let message = self.message.as_deref();
        Way { wishes, from: self.from, message, no_input: self.no_input }
    }
}

impl Way<'_> {
    fn options(self) -> ResumeOptions {
        let mut options = cast::patiently();
        if let Some(version) = self.from {
            options = options.from_checkpoint(version);
        }
        match self.message {
            Some(message) => options.message(message),
            None => options,
        }
    }
}
