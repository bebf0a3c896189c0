//! The location of the sessions of a command: a database or a server.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use helix_agents::client::{Client, Token};
use helix_agents::error::{Error, ErrorCode};

use crate::text::quoted;
use crate::{env, storage};

/// The maximum size of a file with a token, in bytes.
const MAX_TOKEN_BYTES: u64 = 4096;

/// The command line arguments that select the location.
#[derive(Debug, Args)]
pub(crate) struct LocationArgs {
    /// The database: a SQLite file, or a postgres://… or redis://… URL. Default: `HELIX_DB`, or helix.db in the current folder.
    #[arg(long, global = true, value_name = "DATABASE")]
    db: Option<PathBuf>,
    /// Use the sessions and agents of a server that `helix serve` or a program runs, instead of a database.
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
    /// The file with the token for the server. Default: `HELIX_TOKEN`, or no token.
    #[arg(long, global = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The location of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    /// A database. This process executes runs.
    Database(PathBuf),
    /// A server, which executes runs.
    Server {
        /// The address.
        url: String,
        /// The file with the token.
        token_file: Option<PathBuf>,
    },
}

impl Location {
    /// Returns the location that the command line selects, or otherwise the default database.
    ///
    /// # Errors
    /// Returns [`ErrorCode::InputInvalid`] for options that exclude each other. The parser of the command line finds only
    /// those on the same side of the subcommand.
    pub(crate) fn of(args: LocationArgs) -> Result<Self, Error> {
        match args {
            LocationArgs { db: Some(_), server: Some(_), .. } => {
                Err(Error::new(ErrorCode::InputInvalid, "`--db` and `--server` exclude each other"))
            }
            LocationArgs { server: None, token_file: Some(_), .. } => {
                Err(Error::new(ErrorCode::InputInvalid, "`--token-file` needs `--server`"))
            }
            LocationArgs { server: Some(url), token_file, .. } => {
                Ok(Self::Server { url, token_file })
            }
            LocationArgs { db, .. } => Ok(Self::Database(storage::path(db))),
        }
    }

    /// Returns the database.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] for a server.
    pub(crate) fn database(&self) -> Result<&Path, Error> {
        match self {
            Self::Database(path) => Ok(path),
            Self::Server { .. } => {
                let message = "this command works only on a database; run it where the database of the server is, \
                               without --server";
                Err(Error::new(ErrorCode::Unsupported, message))
            }
        }
    }

    /// Returns `true` for a server.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Returns a client of the server, or `None` for a database.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the address is invalid, or the file of the token cannot be read.
    pub(crate) fn client(&self) -> Result<Option<Client>> {
        let Self::Server { url, token_file } = self else { return Ok(None) };
        let mut builder = Client::builder(url);
        if let Some(token) = token(token_file.as_deref())? {
            builder = builder.token(token);
        }
        Ok(Some(builder.build().map_err(Error::from)?))
    }

    /// Returns the name for output, without a password.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Database(path) => storage::shown(path),
            Self::Server { url, .. } => url.clone(),
        }
    }

    /// Returns the options that select this location in another command, with a leading space if there are any.
    pub(crate) fn options(&self) -> String {
        match self {
            Self::Database(path) if storage::is_implied(path) => String::new(),
            Self::Database(path) => format!(" --db {}", quoted(&storage::shown(path))),
            Self::Server { url, token_file: None } => format!(" --server {}", quoted(url)),
            Self::Server { url, token_file: Some(file) } => {
                let file = file.display().to_string();
                format!(" --server {} --token-file {}", quoted(url), quoted(&file))
            }
        }
    }
}

/// Reads the token from the file, or otherwise from the environment. No error contains it.
fn token(file: Option<&Path>) -> Result<Option<Token>> {
    use std::io::Read as _;
    let Some(file) = file else { return Ok(env::HELIX_TOKEN.text().as_deref().map(Token::new)) };
    let invalid = |problem: String| {
        Error::new(ErrorCode::ConfigInvalid, problem).with_context("file", file.display())
    };
    let mut text = String::new();
    let opened = std::fs::File::open(file);
    opened
        .and_then(|opened| opened.take(MAX_TOKEN_BYTES + 1).read_to_string(&mut text))
        .map_err(|error| invalid(format!("the file with the token cannot be read: {error}")))?;
    if text.len() as u64 > MAX_TOKEN_BYTES {
        return Err(invalid("the file is too large for one with a token".to_owned()).into());
    }
    Ok(Some(Token::new(&text)))
}
