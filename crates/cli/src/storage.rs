//! Which database file, and which session in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::id::SessionId;
use helix_agents::prelude::SqliteStore;
use helix_agents::store::{Head, Page, SessionFilter, StateStore as _};

use crate::env;

/// The database, if neither `--db` nor `HELIX_DB` names one.
const DEFAULT: &str = "helix.db";

/// How long closing may take.
const CLOSING: Duration = Duration::from_secs(2);

/// The file to use.
pub(crate) fn path(given: Option<PathBuf>) -> PathBuf {
    let of_environment = || env::HELIX_DB.get().map(PathBuf::from);
    given.or_else(of_environment).unwrap_or_else(|| DEFAULT.into())
}

/// Whether commands find this file without being told.
pub(crate) fn is_implied(db: &Path) -> bool {
    db == path(None)
}

/// Opens a database, and makes it if it is not there.
pub(crate) async fn open_or_create(db: &Path) -> Result<SqliteStore> {
    Ok(SqliteStore::open(db).await?)
}

/// Opens a database that is there: looking for something must not make one.
pub(crate) async fn open(db: &Path) -> Result<SqliteStore> {
    if !db.exists() {
        let message = "there is no database of this name; `helix run` and `helix demo` make one";
        let error = Error::new(ErrorCode::InputInvalid, message);
        return Err(error.with_context("db", db.display()).into());
    }
    open_or_create(db).await
}

/// Opens a database that is there for a command that only reads: where it or its folder cannot be
/// written, as it is.
pub(crate) async fn open_to_read(db: &Path) -> Result<SqliteStore> {
    match open(db).await {
        Err(error) if is_read_only(&error) => {
            // The first error says more about what is in the way.
            Ok(SqliteStore::builder(db).read_only().open().await.map_err(|_| error)?)
        }
        opened => opened,
    }
}

fn is_read_only(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|it| it.code() == ErrorCode::StoreReadOnly)
}

/// Closes a database, so that nothing but its file stays behind. Waits only for a moment: a file
/// that was not closed is as good.
pub(crate) async fn close(store: &SqliteStore) {
    let _late = tokio::time::timeout(CLOSING, store.close()).await;
}

/// Which session, on the command line.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// The session, as `helix sessions list` shows it.
    session: Option<String>,
    /// The newest session.
    #[arg(long)]
    last: bool,
}

impl Which {
    /// The session's head.
    pub(crate) async fn head(&self, store: &SqliteStore) -> Result<Head> {
        match &self.session {
            Some(session) => head(store, session).await,
            None => newest(store).await,
        }
    }
}

/// The head of a session that has to be there.
pub(crate) async fn head(store: &SqliteStore, session: &str) -> Result<Head> {
    let id = SessionId::from(session);
    let missing = || {
        Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
            .with_context("session", &id)
    };
    Ok(store.head(&id).await?.ok_or_else(missing)?)
}

/// The head of the newest session.
pub(crate) async fn newest(store: &SqliteStore) -> Result<Head> {
    let page = Page { after: None, limit: 1 };
    let heads = store.list(&SessionFilter::default(), &page).await?;
    let none = || Error::new(ErrorCode::SessionNotFound, "the database holds no session yet");
    Ok(heads.into_iter().next().ok_or_else(none)?)
}
