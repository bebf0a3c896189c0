//! Transactions that several operations share. The tests block the writer until all operations are
//! queued.

use std::sync::mpsc;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use helix_agents_core::error::{Error, ErrorCode, Result};

use super::{Durability, Writer};
use crate::config::Config;
use crate::error::Failure;
use crate::prepared::Tables;
use crate::worker::Shared;
use crate::{SqliteBuilder, SqliteStore, connection};

mod durability;
mod group;

/// A writer for a file with a table `scratch` and a table `orphan`, whose rows fail at the commit.
struct Scratch {
    folder: tempfile::TempDir,
    writer: Writer,
}

impl Scratch {
    async fn new(options: impl FnOnce(SqliteBuilder) -> SqliteBuilder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = options(SqliteStore::builder(folder.path().join("scratch.db"))).config;
        let writer = open(&config);
        let scratch = Self { folder, writer };
        let sql = "CREATE TABLE scratch (x);
            CREATE TABLE parent (x PRIMARY KEY);
            CREATE TABLE orphan (x REFERENCES parent (x) DEFERRABLE INITIALLY DEFERRED)";
        scratch.run(move |tables| Ok(tables.connection.execute_batch(sql)?)).await.unwrap();
        scratch
    }

    /// Opens another connection to the file.
    fn other(&self) -> Connection {
        Connection::open(self.folder.path().join("scratch.db")).unwrap()
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tables<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.writer.run(Durability::Process, work, |_| ()).await
    }

    /// Adds a row.
    async fn add(&self, x: &'static str) -> Result<()> {
        self.run(move |tables| insert(tables.connection, x)).await
    }

    fn rows(&self) -> Vec<String> {
        rows(&self.other())
    }
}

fn open(config: &Config) -> Writer {
    let connections = connection::open_all(config).unwrap();
    Writer::start(connections.writer, &Shared::new().0).unwrap()
}

fn insert(connection: &Connection, x: &str) -> Result<(), Failure> {
    connection.execute("INSERT INTO scratch VALUES (?1)", [x])?;
    Ok(())
}

fn rows(connection: &Connection) -> Vec<String> {
    let mut rows = connection.prepare("SELECT x FROM scratch ORDER BY rowid").unwrap();
    let rows = rows.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<rusqlite::Result<_>>().unwrap()
}

fn code<T>(result: Result<T>) -> Option<ErrorCode> {
    result.err().as_ref().map(Error::code)
}

/// Blocks a writer until it is dropped.
struct Hold(#[expect(dead_code, reason = "it acts when it is dropped")] mpsc::Sender<()>);

/// Blocks the writer. Operations that arrive meanwhile are queued and run together.
async fn hold(writer: &Writer) -> (Hold, impl Future<Output = Result<()>>) {
    let (release, held) = mpsc::channel();
    let (started, has_started) = oneshot::channel();
    let mut started = Some(started);
    let mut holding = Box::pin(writer.run(
        Durability::Process,
        move |_| {
            if let Some(started) = started.take() {
                started.send(()).unwrap();
            }
            // The receive fails when the sender is dropped.
            assert!(held.recv().is_err());
            Ok(())
        },
        |&()| (),
    ));
    tokio::select! {
        biased;
        _ = &mut holding => unreachable!("the writer is blocked"),
        result = has_started => result.unwrap(),
    }
    (Hold(release), holding)
}

/// Unblocks the writer, after the other operations were polled once.
async fn release(hold: Hold, holding: impl Future<Output = Result<()>>) {
    drop(hold);
    holding.await.unwrap();
}

fn short_timeout(builder: SqliteBuilder) -> SqliteBuilder {
    builder.busy_timeout(Duration::from_millis(20))
}
