//! `helix token`: manages the file of tokens that `helix serve` reads.

mod file;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use helix_agents::server::token_digest;
use helix_agents::terminal::{Screen, notice};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::file::{Entry, TokenFile};
use crate::config_file::ConfigFile;
use crate::exit::Exit;
use crate::text::{count, table};

/// The default file.
const FILE: &str = "tokens.toml";

/// The start of every token, by which scanners of secrets recognise it.
const PREFIX: &str = "helix_";

/// The number of random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// The file of tokens.
#[derive(Debug, Args)]
pub(crate) struct TokensFile {
    /// The file of tokens. Default: `tokens` in the table `[serve]` of helix.toml, or tokens.toml in the current folder.
    #[arg(long, global = true, value_name = "FILE")]
    tokens: Option<PathBuf>,
}

/// The subcommands of `helix token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print it. The file keeps only its digest, so the token cannot be shown again.
    Add {
        /// The name of the user. Tokens with the same name have the same sessions.
        name: String,
        /// The rights of the token.
        #[arg(long, value_enum, default_value_t = Role::User)]
        role: Role,
    },
    /// List the tokens: their names, roles and the start of their digests.
    List,
    /// Remove all tokens of a user. A running server refuses them after about a second.
    Revoke {
        /// The name of the user.
        name: String,
    },
}

/// The rights of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// All actions on all sessions.
    Admin,
    /// All actions on the user's own sessions.
    User,
    /// Reads the user's own sessions.
    Reader,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::User => "user",
            Self::Reader => "reader",
        }
    }
}

/// Runs a subcommand.
pub(crate) fn run(command: TokenCommand, file: &TokensFile, screen: &Screen) -> Result<Exit> {
    let path = match &file.tokens {
        Some(path) => path.clone(),
        None => ConfigFile::read()?.serve.tokens.unwrap_or_else(|| FILE.into()),
    };
    let mut tokens = TokenFile::read(&path)?;
    match command {
        TokenCommand::Add { name, role } => {
            let token = new_token()?;
            tokens.add(Entry { name: name.clone(), role, sha256: token_digest(&token) });
            tokens.write()?;
            let path = path.display();
            if screen.is_json() {
                screen.json(&json!({ "name": name, "role": role, "token": token, "file": path.to_string() }))?;
            } else {
                screen.line(&token)?;
                notice(&format!(
                    "the token was added to {path}, which keeps only its digest; store it now"
                ));
            }
        }
        TokenCommand::List => list(tokens.entries(), screen)?,
        TokenCommand::Revoke { name } => {
            let removed = tokens.remove(&name)?;
            tokens.write()?;
            if screen.is_json() {
                screen.json(&json!({ "name": name, "revoked": removed }))?;
            } else {
                screen.line(format!("revoked {} of {name}", count(removed as u64, "token")))?;
                notice("a running server refuses them after about a second");
            }
        }
    }
    Ok(Exit::Completed)
}

fn list(entries: &[Entry], screen: &Screen) -> Result<()> {
    if screen.is_json() {
        screen.json(&entries)?;
        return Ok(());
    }
    let row = |entry: &Entry| {
        let digest = entry.sha256.get(..8).unwrap_or(&entry.sha256).to_owned();
        [entry.name.clone(), entry.role.as_str().to_owned(), digest]
    };
    for line in table(["NAME", "ROLE", "DIGEST"], &entries.iter().map(row).collect::<Vec<_>>()) {
        screen.line(line)?;
    }
    Ok(())
}

/// Creates a token from the random numbers of the system.
fn new_token() -> Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty());
    let filled = filled.context("the system has no random numbers")?;
    anyhow::ensure!(filled == TOKEN_BYTES, "the system returned too few random numbers");
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    Ok(digits.fold(PREFIX.to_owned(), |token, digits| token + &digits))
}
