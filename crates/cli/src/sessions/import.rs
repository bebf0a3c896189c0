//! `helix sessions import`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::session::{SessionExport, import_session};
use helix_agents::terminal::Screen;
use serde_json::json;

/// The options of the command.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The output of `helix sessions export`; `-` reads standard input.
    file: PathBuf,
}

/// Runs the command.
pub(crate) async fn run(args: &ImportArgs, store: &AnyStore, screen: &Screen) -> Result<()> {
    let export = read(args)?;
    import_session(store, &export).await?;
    let sessions: Vec<_> = export.sessions().iter().map(|session| &session.session).collect();
    if screen.is_json() {
        screen.json(&json!({ "imported": sessions }))?;
    } else {
        for session in sessions {
            screen.line(session.as_str())?;
        }
    }
    Ok(())
}

fn read(args: &ImportArgs) -> Result<SessionExport> {
    let invalid = |message: &'static str| {
        Error::new(ErrorCode::InputInvalid, message).with_context("file", args.file.display())
    };
    let mut input: Box<dyn Read> = if args.file.as_os_str() == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let unreadable = |error| invalid("the file cannot be read").with_source(error);
        Box::new(File::open(&args.file).map_err(unreadable)?)
    };
    let mut text = String::new();
    let unreadable = |error| invalid("the file cannot be read as text").with_source(error);
    BufReader::new(&mut input).read_to_string(&mut text).map_err(unreadable)?;
    // Omits the parser's message, which may quote the session.
    let unexpected = |error: serde_json::Error| {
        invalid("the file is not an export of `helix sessions export`")
            .with_context("line", error.line())
            .with_context("column", error.column())
    };
    Ok(serde_json::from_str(&text).map_err(unexpected)?)
}
