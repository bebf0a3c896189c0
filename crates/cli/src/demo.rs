//! `helix demo`: runs the research agent once.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use helix_agents::executor::ExecuteOptions;
use helix_agents::terminal::{Screen, Style, notice};
use helix_agents_demo::{QUESTION, script};

use crate::approver::Approver;
use crate::drive;
use crate::env;
use crate::executor::Executor;
use crate::exit::Exit;
use crate::location::Location;
use crate::model::{Model, is_script};
use crate::place::{Access, Place};
use crate::run_view::RunView;
use crate::session_agent::SessionAgent;

/// The options of `helix demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Use a built-in script instead of a model.
    #[arg(long, conflicts_with = "model")]
    scripted: bool,
    /// The delay of the script between chunks, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30)]
    pace: u64,
    /// Append a line of JSON to this file whenever a tool starts.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The model, as `provider:model`. Default: `HELIX_MODEL`; else the first one configured by
    /// OPENAI_API_KEY, OPENAI_BASE_URL or helix.toml; else a model server on a well-known port of this
    /// machine; else the script.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(args: DemoArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let started = Instant::now();
    let pace = Duration::from_millis(args.pace);
    let named = args.model.clone().or_else(|| env::HELIX_MODEL.text());
    let model = match named.as_deref() {
        _ if args.scripted => Model::scripted(script(pace)),
        Some(name) if is_script(name) => Model::scripted(script(pace)),
        name => Model::select(name).await?.unwrap_or_else(|| Model::scripted(script(pace))),
    };
    if model.is_script() && !args.scripted && !screen.is_json() {
        notice(
            "No model is configured, and no model server responds on this machine: a built-in script \
             replaces the model.\nIts replies are fixed; tools, log, stream and resume are real. To use a real \
             model, set OPENAI_API_KEY,\nANTHROPIC_API_KEY or another provider's key, configure one in helix.toml, or \
             start a local server such as Ollama.",
        );
    }
    let session_agent = SessionAgent::of_demo(model, pace, args.trace.as_deref())?;
    let place = Place::open(db, Access::Create).await?;
    let executor = Executor::local(&session_agent, &place)?;
    let mut options = ExecuteOptions::default();
    options.tags = session_agent.tags();
    let handle = executor.start(QUESTION.to_owned(), options).await?;
    let heading = format!(
        "model    {}\nsession  {} in {}\nquestion {}\n\n",
        session_agent.model(),
        handle.session(),
        db.shown(),
        screen.styled(Style::Bold, QUESTION)
    );
    let run_view = RunView {
        screen,
        db,
        model: Some(session_agent.model().name()),
        started: Some(started),
        interactive: false,
    };
    let exit = drive::run_to_end(&executor, handle, Approver::default(), run_view, &heading).await;
    place.close().await;
    exit
}
