//! `helix demo`: runs the research agent once, from the question to the report.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use helix_agents::executor::{AgentExecutorExt as _, ExecuteOptions};

use crate::drive::{self, Around};
use crate::exit::Exit;
use crate::model::Model;
use crate::research::{QUESTION, Setting, researcher};
use crate::screen::{Screen, Style, notice};
use crate::storage;

/// The options of `helix demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Let a built-in script play the model.
    #[arg(long, conflicts_with = "model")]
    scripted: bool,
    /// The script's delay between chunks, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30)]
    pace: u64,
    /// Add one line of JSON to this file at each start of a tool, written by the tool itself.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The model, as `provider:model`. Default: `HELIX_MODEL`; the first that is configured by
    /// OPENAI_API_KEY, OPENAI_BASE_URL or helix.toml; a server on a usual port of this machine; the
    /// script.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(args: DemoArgs, db: &Path, screen: &Screen) -> Result<Exit> {
    let began = Instant::now();
    let pace = Duration::from_millis(args.pace);
    let model = match &args.model {
        _ if args.scripted => Model::script(pace),
        Some(name) => Model::named(name, pace).await?,
        None => Model::first(pace).await?,
    };
    if model.is_script() && !args.scripted && !screen.is_json() {
        notice(
            "No model is configured, and no model server answers on this machine: a built-in script \
             plays the model.\nIts words are fixed; tools, log, stream and resume are real. For a real \
             model set OPENAI_API_KEY\nor OPENAI_BASE_URL, describe one in helix.toml, or start one: \
             cargo xtask servers model",
        );
    }
    let setting = Setting::new(model, pace, args.trace.as_deref())?;
    let agent = researcher(&setting)?;
    let store = storage::open_or_create(db).await?;
    let runtime = setting.runtime(store.clone())?;
    let around = Around { db, model: setting.model().name(), began };
    let mut options = ExecuteOptions::default();
    options.tags = setting.tags();
    let handle = runtime.start(&agent, QUESTION, options).await?;
    if !screen.is_json() {
        screen.line(format!("model    {}", setting.model()))?;
        screen.line(format!("session  {} in {}", handle.session(), db.display()))?;
        screen.line(format!("question {}", screen.styled(Style::Bold, QUESTION)))?;
        screen.line("")?;
    }
    let exit = drive::to_the_end(&runtime, &handle, screen, around).await;
    storage::close(&store).await;
    exit
}
