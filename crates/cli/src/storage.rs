//! The database of a command.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use helix_agents::clock::{Clock, IdSource};
use helix_agents::error::{Error, ErrorCode};
use helix_agents::id::SessionId;
use helix_agents::runtime_local::{SystemIds, TokioClock};
use helix_agents::store::{Head, Page, SessionFilter, StateStore as _};
use helix_agents::{AnyStore, StoreOptions, StoreUrl};

use crate::env;

/// The default database, if neither `--db` nor `HELIX_DB` is set.
const DEFAULT: &str = "helix.db";

/// The timeout for closing the database.
const CLOSING: Duration = Duration::from_secs(2);

/// The maximum number of PostgreSQL connections of a command.
const CONNECTIONS: usize = 4;

/// The time for which commands that follow a session retry while the server is unavailable. Other commands fail
/// immediately.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Parses a database name. Everything that is not the URL of a server or `sqlite:FILE` is a file.
pub(crate) fn location(db: &Path) -> StoreUrl {
    match db.to_str().map(StoreUrl::parse) {
        Some(Ok(url)) if url != StoreUrl::Memory => url,
        _ => StoreUrl::Sqlite(db.to_owned()),
    }
}

/// The name of the database for output, without the password.
pub(crate) fn shown(db: &Path) -> String {
    match location(db) {
        StoreUrl::Sqlite(file) => file.display().to_string(),
        server => server.to_string(),
    }
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
pub(crate) async fn open_or_create(db: &Path) -> Result<AnyStore> {
    Ok(location(db).open(&options()).await?)
}

/// Opens an existing database. Commands that read or change sessions must not create one.
pub(crate) async fn open(db: &Path) -> Result<AnyStore> {
    let location = location(db);
    if let StoreUrl::Sqlite(file) = &location
        && !file.exists()
    {
        let message = "the database does not exist; `helix run` and `helix demo` create one";
        let error = Error::new(ErrorCode::InputInvalid, message);
        return Err(error.with_context("db", file.display()).into());
    }
    Ok(location.open(&options().migrate_on_open(false)).await?)
}

/// Opens an existing database for a command that only reads. Falls back to read-only access if the file
/// or its folder is not writable.
pub(crate) async fn open_to_read(db: &Path) -> Result<AnyStore> {
    match open(db).await {
        Err(error) if is_read_only(&error) && matches!(location(db), StoreUrl::Sqlite(_)) => {
            // The first error describes the cause better.
            Ok(location(db).open(&options().read_only()).await.map_err(|_| error)?)
        }
        opened => opened,
    }
}

fn options() -> StoreOptions {
    StoreOptions::new().connections(CONNECTIONS)
}

/// A store that retries requests while the server is unavailable, for commands that follow a session.
pub(crate) fn with_retries(store: AnyStore) -> AnyStore {
    let (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>) =
        (Arc::new(TokioClock::new()), Arc::new(SystemIds));
    store.with_retries(&clock, &ids, RETRY_TIMEOUT)
}

fn is_read_only(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(|error| error.code() == ErrorCode::StoreReadOnly)
}

/// Closes a database, so that only its main file remains. The wait is limited, because a database that
/// was not closed is still consistent.
pub(crate) async fn close(store: &AnyStore) {
    let _late = tokio::time::timeout(CLOSING, store.close()).await;
}

/// Loads the head of a session.
pub(crate) async fn head(store: &AnyStore, session: &str) -> Result<Head> {
    let id = SessionId::from(session);
    let missing = || {
        Error::new(ErrorCode::SessionNotFound, "the session does not exist")
            .with_context("session", &id)
    };
    Ok(store.head(&id).await?.ok_or_else(missing)?)
}

/// Loads the head of the newest root session. Child sessions, which are newer than their parents, are
/// skipped.
pub(crate) async fn newest(store: &AnyStore) -> Result<Head> {
    let mut page = Page { after: None, limit: 16 };
    loop {
        let heads = store.list(&SessionFilter::default(), &page).await?;
        let last = heads.last().map(|head| head.session.clone());
        if let Some(head) = heads.into_iter().find(|head| head.created.parent.is_none()) {
            return Ok(head);
        }
        if last.is_none() {
            let message = "there are no sessions yet";
            return Err(Error::new(ErrorCode::SessionNotFound, message).into());
        }
        page.after = last;
    }
}
