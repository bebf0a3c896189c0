//! `helix run`: runs one turn of the agent in an agent file.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents::terminal::{Screen, Style, notice};

use crate::approver::{self, Approver};
use crate::drive;
use crate::exit::Exit;
use crate::failure;
use crate::input;
use crate::run_view::RunView;
use crate::session_agent::{Overrides, SessionAgent};
use crate::storage;

/// The options of `helix run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The agent file.
    #[arg(value_name = "AGENT_FILE")]
    agent: PathBuf,
    /// The prompt. `-` reads it from standard input. Default: standard input, unless that is a
    /// terminal.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// The model, as `provider:model`. Default: the agent file's, else `HELIX_MODEL`, else the
    /// first configured provider's, else that of a local model server.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
    /// Run another turn of this session.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// The folder that the agent's file tools may access, instead of the one in the agent file.
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,
    /// Do not ask for approvals at the terminal; use `helix approvals` to answer.
    #[arg(long)]
    no_input: bool,
}

/// Runs the command.
pub(crate) async fn run(args: RunArgs, db: &Path, screen: &Screen) -> Result<Exit> {
    let started = Instant::now();
    let screen = &screen.for_answers();
    let Some(prompt) = prompt(args.prompt.as_deref())? else {
        let message = "the prompt is missing or empty; pass one after the agent file or on standard \
                       input";
        let text = if screen.is_json() {
            failure::usage(message).to_string()
        } else {
            format!("helix: {message}")
        };
        notice(&text);
        return Ok(Exit::Usage);
    };
    let (started, interactive) = (Some(started), approver::is_possible(screen, args.no_input));
    let Some(session) = &args.session else {
        // Checks the agent file before a database is created.
        let session_agent = SessionAgent::of_file(&args.agent, args.overrides()).await?;
        let store = storage::open_or_create(db).await?;
        let run_view =
            RunView { screen, db, model: session_agent.model().name(), started, interactive };
        let exit = turn(&session_agent, ExecuteOptions::default(), prompt, &store, run_view).await;
        storage::close(&store).await;
        return exit;
    };
    let store = storage::open(db).await?;
    let further_turn = async {
        let head = storage::head(&store, session).await?;
        let session_agent = SessionAgent::of_session(&head, args.overrides()).await?;
        let run_view =
            RunView { screen, db, model: session_agent.model().name(), started, interactive };
        let options = ExecuteOptions::default().session(head.session);
        turn(&session_agent, options, prompt, &store, run_view).await
    };
    let exit = further_turn.await;
    storage::close(&store).await;
    exit
}

async fn turn(
    session_agent: &SessionAgent,
    mut options: ExecuteOptions,
    prompt: String,
    store: &AnyStore,
    run_view: RunView<'_>,
) -> Result<Exit> {
    options.tags = session_agent.tags();
    session_agent.show_warnings(run_view.screen);
    let runtime = session_agent.runtime(store.clone())?;
    let agent = Arc::clone(session_agent.agent());
    let handle = runtime.execute(agent, prompt.into(), options).await?;
    let heading = format!(
        "agent    {}\nmodel    {}\nsession  {} in {}\n\n",
        run_view.screen.styled(Style::Bold, session_agent.agent().name()),
        session_agent.model(),
        handle.session(),
        storage::shown(run_view.db)
    );
    drive::run_to_end(
        &runtime,
        session_agent.agent(),
        handle,
        Approver::default(),
        run_view,
        &heading,
    )
    .await
}

impl RunArgs {
    fn overrides(&self) -> Overrides<'_> {
        Overrides {
            model: self.model.as_deref(),
            agent: Some(&self.agent),
            files: self.files.as_deref(),
            trace: None,
        }
    }
}

/// Reads the prompt. Returns `None` if it is missing or empty.
fn prompt(argument: Option<&str>) -> Result<Option<String>> {
    let prompt = match argument {
        Some("-") => input::standard_input("the prompt")?,
        None if std::io::stdin().is_terminal() => return Ok(None),
        None => input::standard_input("the prompt")?,
        Some(prompt) => prompt.to_owned(),
    };
    if prompt.trim().is_empty() {
        return Ok(None);
    }
    Ok(Some(prompt))
}
