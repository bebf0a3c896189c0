//! `helix chat`: a conversation with an agent, with one turn per message.

mod agent;
mod commands;
mod conversation;
mod editor;
mod entry;
mod input;
mod plain;

use std::ops::ControlFlow::{Break, Continue};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::terminal::{Screen, notice};

use self::agent::ChatAgent;
use self::conversation::Conversation;
use self::entry::Entry;
use self::input::{HINT, Input, InputEvent};
use crate::approver;
use crate::drive::OutputFailed;
use crate::exit::Exit;
use crate::failure;
use crate::location::Location;
use crate::place::{Access, Place};
use crate::session_agent::Overrides;

/// The options of `helix chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// The agent file. Default: the session's; else agent.toml in the current folder, if it exists;
    /// else a small assistant. With --server, the name of the agent; default: the session's, or the only one.
    #[arg(value_name = "AGENT_FILE")]
    agent: Option<PathBuf>,
    /// Continue this session.
    #[arg(long, value_name = "SESSION", conflicts_with = "last")]
    session: Option<String>,
    /// Continue the newest root session.
    #[arg(long)]
    last: bool,
    /// The model, as `provider:model`. Default: the session's, else the agent file's, else
    /// `HELIX_MODEL`, else the first configured provider's, else that of a local model server.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<String>,
    /// Do not ask for approvals at the terminal; use `helix approvals` to answer.
    #[arg(long)]
    no_input: bool,
}

/// Runs the command.
pub(crate) async fn run(args: ChatArgs, db: &Location, screen: &Screen) -> Result<Exit> {
    let is_existing = args.last || args.session.is_some();
    let access = if is_existing { Access::Write } else { Access::Create };
    let place = Place::open(db, access).await?;
    let exit = chat(&args, &place, db, screen).await;
    place.close().await;
    exit
}

async fn chat(args: &ChatArgs, place: &Place, db: &Location, screen: &Screen) -> Result<Exit> {
    let mut conversation = open(args, place, db, screen).await?;
    let mut input = Input::open(screen.is_json())?;
    if input.is_terminal() {
        conversation.introduce().await?;
    }
    let mut exit = Exit::Completed;
    loop {
        let entry = match input.next().await? {
            InputEvent::Entry(entry) => Entry::of(&entry),
            InputEvent::Unusable(error) => {
                exit = report(&error, screen);
                continue;
            }
            InputEvent::Cleared => {
                notice(HINT);
                continue;
            }
            InputEvent::End => break,
            InputEvent::Stop => return Ok(Exit::Interrupted),
        };
        let done = match entry {
            Entry::Blank => continue,
            Entry::Message(message) => conversation.turn(message).await.map(Continue),
            Entry::Command(entry::Command::Quit, _) => break,
            Entry::Command(command, argument) => {
                conversation.command(command, argument.as_deref(), input.signals()).await
            }
            Entry::Unknown(message) => Err(conversation::unusable(message)),
        };
        let done = match done {
            Ok(Continue(done)) => done,
            Ok(Break(exit)) => return Ok(exit),
            // The output is unavailable and the runtime is shut down, so the chat ends.
            Err(error) if error.is::<OutputFailed>() => return Err(error),
            // Only this entry failed; the chat continues with the next one.
            Err(error) => report(&error, screen),
        };
        if input.is_terminal() {
            continue;
        }
        match done {
            Exit::Completed => {}
            // For piped input, Ctrl-C ends the program.
            Exit::Interrupted => return Ok(done),
            _ => exit = done,
        }
    }
    if input.is_terminal() {
        conversation.leave();
    }
    Ok(exit)
}

/// Opens the conversation that the command line selects.
async fn open<'a>(
    args: &ChatArgs,
    place: &'a Place,
    db: &'a Location,
    screen: &'a Screen,
) -> Result<Conversation<'a>> {
    let overrides = Overrides {
        model: args.model.as_deref(),
        agent: args.agent.as_deref(),
        ..Overrides::default()
    };
    let head = match &args.session {
        Some(session) => Some(place.head(session).await?),
        None if args.last => Some(place.newest().await?),
        None => None,
    };
    let agent = match &head {
        Some(head) => ChatAgent::of_session(place, head, overrides).await?,
        None => ChatAgent::of_conversation(place, overrides).await?,
    };
    let session = head.map(|head| head.session);
    let mut conversation =
        Conversation::new(agent, args.agent.clone(), session, place, db, screen)?;
    conversation.interactive = approver::is_possible(screen, args.no_input);
    Ok(conversation)
}

/// Reports an entry that failed.
fn report(error: &anyhow::Error, screen: &Screen) -> Exit {
    let known = error.downcast_ref::<Error>();
    match known.filter(|error| error.code() == ErrorCode::InputInvalid && !screen.is_json()) {
        Some(error) => {
            notice(error.message());
            Exit::Failed
        }
        None => failure::report(error, screen.is_json()),
    }
}
