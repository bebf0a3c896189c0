//! Transactions that several operations share. The writer is held up until all of them wait.

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

/// A writer of a file with a table `scratch`, and one whose rows are refused at the commit.
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

    /// Another connection to the file.
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

/// What holds a writer up until it is dropped.
struct Hold(#[expect(dead_code, reason = "dropping it is what counts")] mpsc::Sender<()>);

/// Holds the writer up. What is asked for meanwhile waits, and is done together.
async fn hold(writer: &Writer) -> (Hold, impl Future<Output = Result<()>>) {
    let (release, held) = mpsc::channel();
    let (began, begun) = oneshot::channel();
    let mut began = Some(began);
    let mut holding = Box::pin(writer.run(
        Durability::Process,
        move |_| {
            if let Some(began) = began.take() {
                began.send(()).unwrap();
            }
            // It ends when the sender is dropped.
            assert!(held.recv().is_err());
            Ok(())
        },
        |&()| (),
    ));
    tokio::select! {
        biased;
        _ = &mut holding => unreachable!("it is held"),
        begun = begun => begun.unwrap(),
    }
    (Hold(release), holding)
}

/// Lets the writer go on after a moment in which others are polled.
async fn release(hold: Hold, holding: impl Future<Output = Result<()>>) {
    drop(hold);
    holding.await.unwrap();
}

fn patience(builder: SqliteBuilder) -> SqliteBuilder {
    builder.busy_timeout(Duration::from_millis(20))
}
