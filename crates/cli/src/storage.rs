//! Which database, and which session in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::id::SessionId;
use helix_agents::store::{Head, Page, SessionFilter, StateStore as _};

use crate::env;
use crate::store::Store;

/// The database, if neither `--db` nor `HELIX_DB` names one.
const DEFAULT: &str = "helix.db";

/// How long closing may take.
const CLOSING: Duration = Duration::from_secs(2);

/// What `--db` names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A file.
    Sqlite(&'a Path),
    /// The URL of a server's database.
    Postgres(&'a str),
    /// The URL of a Redis server.
    Redis(&'a str),
}

impl<'a> Place<'a> {
    /// What is meant: whatever is not the URL of a server is a file.
    pub(crate) fn of(db: &'a Path) -> Self {
        let scheme =
            db.to_str().and_then(|it| it.split_once("://").map(|(scheme, _)| (scheme, it)));
        match scheme {
            Some(("postgres" | "postgresql", url)) => Self::Postgres(url),
            Some(("redis" | "rediss", url)) => Self::Redis(url),
            _ => Self::Sqlite(db),
        }
    }
}

/// The database as it is shown: without the password.
pub(crate) fn shown(db: &Path) -> String {
    match Place::of(db) {
        Place::Sqlite(file) => file.display().to_string(),
        Place::Postgres(url) | Place::Redis(url) => without_password(url),
    }
}

/// A URL with as much of it as others may see. Of what stands after a question mark, which may hold a
/// password, too, that is what says where in the database the sessions are, and how they are reached.
fn without_password(url: &str) -> String {
    let (url, options) = url.split_once('?').unwrap_or((url, ""));
    let says_where = |option: &&str| {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        matches!(name, "schema" | "prefix" | "pooler")
    };
    let mut shown = without_user_password(url);
    for (number, option) in options.split('&').filter(says_where).enumerate() {
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

/// The database to use.
pub(crate) fn path(given: Option<PathBuf>) -> PathBuf {
    let of_environment = || env::HELIX_DB.get().map(PathBuf::from);
    given.or_else(of_environment).unwrap_or_else(|| DEFAULT.into())
}

/// Whether commands find this file without being told.
pub(crate) fn is_implied(db: &Path) -> bool {
    db == path(None)
}

/// Opens a database, and makes it if it is not there.
pub(crate) async fn open_or_create(db: &Path) -> Result<Store> {
    Ok(match Place::of(db) {
        Place::Sqlite(file) => Store::sqlite(file).await?,
        Place::Postgres(url) => Store::postgres(url, true).await?,
        Place::Redis(url) => Store::redis(url).await?,
    })
}

/// Opens a database that is there: looking for something must not make one.
pub(crate) async fn open(db: &Path) -> Result<Store> {
    match Place::of(db) {
        Place::Postgres(url) => return Ok(Store::postgres(url, false).await?),
        Place::Redis(url) => return Ok(Store::redis(url).await?),
        Place::Sqlite(_) => {}
    }
    if !db.exists() {
        let message = "there is no database of this name; `helix run` and `helix demo` make one";
        let error = Error::new(ErrorCode::InputInvalid, message);
        return Err(error.with_context("db", db.display()).into());
    }
    open_or_create(db).await
}

/// Opens a database that is there for a command that only reads: where it or its folder cannot be
/// written, as it is.
pub(crate) async fn open_to_read(db: &Path) -> Result<Store> {
    match open(db).await {
        Err(error) if is_read_only(&error) && matches!(Place::of(db), Place::Sqlite(_)) => {
            // The first error says more about what is in the way.
            Ok(Store::sqlite_to_read(db).await.map_err(|_| error)?)
        }
        opened => opened,
    }
}

fn is_read_only(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|it| it.code() == ErrorCode::StoreReadOnly)
}

/// Closes a database, so that nothing but its file stays behind. Waits only for a moment: one
/// that was not closed is as good.
pub(crate) async fn close(store: &Store) {
    let _late = tokio::time::timeout(CLOSING, store.close()).await;
}

/// Which session, on the command line.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The session, as `helix sessions list` shows it.
    session: Option<String>,
    /// The newest session that is nobody's child.
    #[arg(long)]
    last: bool,
}

impl Which {
    /// The session's head.
    pub(crate) async fn head(&self, store: &Store) -> Result<Head> {
        match &self.session {
            Some(session) => head(store, session).await,
            None => newest(store).await,
        }
    }
}

/// The head of a session that has to be there.
pub(crate) async fn head(store: &Store, session: &str) -> Result<Head> {
    let id = SessionId::from(session);
    let missing = || {
        Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
            .with_context("session", &id)
    };
    Ok(store.head(&id).await?.ok_or_else(missing)?)
}

/// The head of the newest session that people began: children are younger than their parents.
pub(crate) async fn newest(store: &Store) -> Result<Head> {
    let mut page = Page { after: None, limit: 16 };
    loop {
        let heads = store.list(&SessionFilter::default(), &page).await?;
        let last = heads.last().map(|head| head.session.clone());
        if let Some(head) = heads.into_iter().find(|head| head.created.parent.is_none()) {
            return Ok(head);
        }
        if last.is_none() {
            let message = "the database holds no session yet";
            return Err(Error::new(ErrorCode::SessionNotFound, message).into());
        }
        page.after = last;
    }
}

#[cfg(test)]
mod tests;
