//! `helix run`: runs one turn of the agent in an agent file.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use helix_agents::client::Client;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::ExecuteOptions;
use helix_agents::terminal::{Screen, Style, notice};

use crate::approver::{self, Approver};
use crate::drive;
use crate::executor::Executor;
use crate::exit::Exit;
use crate::failure;
use crate::input;
use crate::location::Location;
use crate::model::Model;
use crate::place::{Access, Place};
use crate::run_view::RunView;
use crate::session_agent::{Overrides, SessionAgent};

/// The options of `helix run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The agent file; with --server, the name of the agent at the server.
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
pub(crate) async fn run(args: RunArgs, db: &Location, screen: &Screen) -> Result<Exit> {
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
    let interactive = approver::is_possible(screen, args.no_input);
    let cx = TurnContext { screen, db, started, interactive };
    if let Some(client) = db.client()? {
        return at_server(&args, &client, prompt, cx).await;
    }
    let Some(session) = &args.session else {
        // Checks the agent file before a database is created.
        let session_agent = SessionAgent::of_file(&args.agent, args.overrides()).await?;
        let place = Place::open(db, Access::Create).await?;
        let exit = here(&session_agent, ExecuteOptions::default(), prompt, &place, cx).await;
        place.close().await;
        return exit;
    };
    let place = Place::open(db, Access::Write).await?;
    let further_turn = async {
        let head = place.head(session).await?;
        let session_agent = SessionAgent::of_session(&head, args.overrides()).await?;
        let options = ExecuteOptions::default().session(head.session);
        here(&session_agent, options, prompt, &place, cx).await
    };
    let exit = further_turn.await;
    place.close().await;
    exit
}

/// The context of a turn.
#[derive(Debug, Clone, Copy)]
struct TurnContext<'a> {
    screen: &'a Screen,
    db: &'a Location,
    started: Instant,
    interactive: bool,
}

/// The agent of a turn.
#[derive(Debug, Clone, Copy)]
struct TurnAgent<'a> {
    name: &'a str,
    /// The model. `None` at a server, which chooses it.
    model: Option<&'a Model>,
}

/// Runs a turn in this process.
async fn here(
    session_agent: &SessionAgent,
    mut options: ExecuteOptions,
    prompt: String,
    place: &Place,
    cx: TurnContext<'_>,
) -> Result<Exit> {
    options.tags = session_agent.tags();
    session_agent.show_warnings(cx.screen);
    let executor = Executor::local(session_agent, place)?;
    let agent =
        TurnAgent { name: session_agent.agent().name(), model: Some(session_agent.model()) };
    turn(&executor, options, prompt, agent, cx).await
}

/// Runs a turn at a server.
async fn at_server(
    args: &RunArgs,
    client: &Client,
    prompt: String,
    cx: TurnContext<'_>,
) -> Result<Exit> {
    if args.model.is_some() || args.files.is_some() {
        let message =
            "the server determines the model and the files of its agents; omit --model and --files";
        return Err(Error::new(ErrorCode::InputInvalid, message).into());
    }
    let agent = args.agent.to_string_lossy();
    let mut options = ExecuteOptions::default();
    options.session = args.session.as_deref().map(Into::into);
    let executor = Executor::remote(client, &agent);
    turn(&executor, options, prompt, TurnAgent { name: &agent, model: None }, cx).await
}

async fn turn(
    executor: &Executor,
    options: ExecuteOptions,
    prompt: String,
    agent: TurnAgent<'_>,
    cx: TurnContext<'_>,
) -> Result<Exit> {
    let TurnContext { screen, db, started, interactive } = cx;
    let handle = executor.start(prompt, options).await?;
    let model = agent.model.map(|model| format!("model    {model}\n")).unwrap_or_default();
    let heading = format!(
        "agent    {}\n{model}session  {} {} {}\n\n",
        screen.styled(Style::Bold, agent.name),
        handle.session(),
        if db.is_server() { "at" } else { "in" },
        db.shown()
    );
    let model = agent.model.map(Model::name);
    let run_view = RunView { screen, db, model, started: Some(started), interactive };
    drive::run_to_end(executor, handle, Approver::default(), run_view, &heading).await
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
