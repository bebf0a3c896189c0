//! The database of a command, and the session that the command selects in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::id::SessionId;
use helix_agents::store::{Head, Page, SessionFilter, StateStore as _};

use crate::env;
use crate::store::Store;

/// The default database, if neither `--db` nor `HELIX_DB` is set.
const DEFAULT: &str = "helix.db";

/// The timeout for closing the database.
const CLOSING: Duration = Duration::from_secs(2);

/// The kind and location of a database.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Location<'a> {
    /// The path of a SQLite file.
    Sqlite(&'a Path),
    /// The URL of a PostgreSQL database.
    Postgres(&'a str),
    /// The URL of a Redis server.
    Redis(&'a str),
}

impl<'a> Location<'a> {
    /// Parses a database name. Everything that is not the URL of a server is a file.
    pub(crate) fn of(db: &'a Path) -> Self {
        let scheme =
            db.to_str().and_then(|url| url.split_once("://").map(|(scheme, _)| (scheme, url)));
        match scheme {
            Some(("postgres" | "postgresql", url)) => Self::Postgres(url),
            Some(("redis" | "rediss", url)) => Self::Redis(url),
            _ => Self::Sqlite(db),
        }
    }
}

/// The name of the database for output, without the password.
pub(crate) fn shown(db: &Path) -> String {
    match Location::of(db) {
        Location::Sqlite(file) => file.display().to_string(),
        Location::Postgres(url) | Location::Redis(url) => without_password(url),
    }
}

/// Removes secrets from a URL. Query parameters may contain a password, too, so only those that identify
/// the location of the sessions and the kind of connection are kept.
fn without_password(url: &str) -> String {
    let (url, options) = url.split_once('?').unwrap_or((url, ""));
    let is_shown = |option: &&str| {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        matches!(name, "schema" | "prefix" | "pooler")
    };
    let mut shown = without_user_password(url);
    for (number, option) in options.split('&').filter(is_shown).enumerate() {
        shown.push(if number == 0 { '?' } else { '&' });
        shown.push_str(option);
    }
    shown
}

fn without_user_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let Some((user, place)) = rest.rsplit_once('@') else { return url.to_owned() };
    let user = user.split_once(':').map_or(user, |(user, _)| user);
    format!("{scheme}://{user}@{place}")
}

/// The database to use: the argument, `HELIX_DB` or the default.
pub(crate) fn path(argument: Option<PathBuf>) -> PathBuf {
    let of_environment = || env::HELIX_DB.get().map(PathBuf::from);
    argument.or_else(of_environment).unwrap_or_else(|| DEFAULT.into())
}

/// Returns `true` if commands use this database without `--db`.
pub(crate) fn is_implied(db: &Path) -> bool {
    db == path(None)
}

/// Opens a database and creates it if it does not exist.
pub(crate) async fn open_or_create(db: &Path) -> Result<Store> {
    Ok(match Location::of(db) {
        Location::Sqlite(file) => Store::sqlite(file).await?,
        Location::Postgres(url) => Store::postgres(url, true).await?,
        Location::Redis(url) => Store::redis(url).await?,
    })
}

/// Opens an existing database. Commands that read or change sessions must not create one.
pub(crate) async fn open(db: &Path) -> Result<Store> {
    match Location::of(db) {
        Location::Postgres(url) => return Ok(Store::postgres(url, false).await?),
        Location::Redis(url) => return Ok(Store::redis(url).await?),
        Location::Sqlite(_) => {}
    }
    if !db.exists() {
        let message = "the database does not exist; `helix run` and `helix demo` create one";
        let error = Error::new(ErrorCode::InputInvalid, message);
        return Err(error.with_context("db", db.display()).into());
    }
    open_or_create(db).await
}

/// Opens an existing database for a command that only reads. Falls back to read-only access if the file
/// or its folder is not writable.
pub(crate) async fn open_to_read(db: &Path) -> Result<Store> {
    match open(db).await {
        Err(error) if is_read_only(&error) && matches!(Location::of(db), Location::Sqlite(_)) => {
            // The first error describes the cause better.
            Ok(Store::sqlite_to_read(db).await.map_err(|_| error)?)
        }
        opened => opened,
    }
}

fn is_read_only(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| error.code() == ErrorCode::StoreReadOnly)
}

/// Closes a database, so that only its main file remains. The wait is limited, because a database that
/// was not closed is still consistent.
pub(crate) async fn close(store: &Store) {
    let _late = tokio::time::timeout(CLOSING, store.close()).await;
}

/// The command line arguments that select a session.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The session, as `helix sessions list` shows it.
    session: Option<String>,
    /// Use the newest root session.
    #[arg(long)]
    last: bool,
}

impl Which {
    /// Loads the head of the session.
    pub(crate) async fn head(&self, store: &Store) -> Result<Head> {
        match &self.session {
            Some(session) => head(store, session).await,
            None => newest(store).await,
        }
    }
}

/// Loads the head of a session.
pub(crate) async fn head(store: &Store, session: &str) -> Result<Head> {
    let id = SessionId::from(session);
    let missing = || {
        Error::new(ErrorCode::SessionNotFound, "the session does not exist")
            .with_context("session", &id)
    };
    Ok(store.head(&id).await?.ok_or_else(missing)?)
}

/// Loads the head of the newest root session. Child sessions, which are newer than their parents, are
/// skipped.
pub(crate) async fn newest(store: &Store) -> Result<Head> {
    let mut page = Page { after: None, limit: 16 };
    loop {
        let heads = store.list(&SessionFilter::default(), &page).await?;
        let last = heads.last().map(|head| head.session.clone());
        if let Some(head) = heads.into_iter().find(|head| head.created.parent.is_none()) {
            return Ok(head);
        }
        if last.is_none() {
            let message = "the database has no sessions yet";
            return Err(Error::new(ErrorCode::SessionNotFound, message).into());
        }
        page.after = last;
    }
}

#[cfg(test)]
mod tests;
