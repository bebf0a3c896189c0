//! The stores of the end-to-end tests, by URL. A new store is a line in [`KINDS`].

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use helix_agents::error::Error;
use helix_agents::store_postgres::PostgresStore;
use helix_agents::store_redis::RedisStore;
use helix_agents::{StoreOptions, StoreUrl};
use helix_agents_testkit::servers::{self, Afterwards};
use helix_agents_testkit::trees::Stores;

/// The location of a new store. On a server its data is deleted when this is dropped.
#[derive(Debug)]
pub struct Place {
    /// The URL of the store.
    pub url: String,
    _cleanup: Option<Afterwards>,
}

/// A kind of store.
#[derive(Debug)]
pub struct Kind {
    /// The name of the kind, with which its URLs start.
    pub name: &'static str,
    place: fn(&Path) -> Place,
}

/// All kinds of stores. Each opened in-memory store is separate.
#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    Kind { name: "memory",   place: memory },
    Kind { name: "sqlite",   place: file },
    Kind { name: "postgres", place: schema },
    Kind { name: "redis",    place: prefix },
];

/// The busy timeout. It is long because many workers write to one file concurrently.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The connections of a worker. There are few because many workers use one server concurrently.
const CONNECTIONS: usize = 2;

fn memory(_: &Path) -> Place {
    Place { url: "memory:".to_owned(), _cleanup: None }
}

fn file(folder: &Path) -> Place {
    Place { url: format!("sqlite:{}", folder.join("story.db").display()), _cleanup: None }
}

fn schema(_: &Path) -> Place {
    let url = format!("{}?schema={}", servers::postgres(), servers::unique());
    let store = PostgresStore::builder(&url).connections(1);
    Place { url, _cleanup: Some(Afterwards::new(|| check_destroyed(store.destroy()))) }
}

fn prefix(_: &Path) -> Place {
    let url = format!("{}?prefix={}", servers::redis(), servers::unique());
    let store = RedisStore::builder(&url);
    Place { url, _cleanup: Some(Afterwards::new(|| check_destroyed(store.destroy()))) }
}

#[expect(clippy::expect_used, reason = "a test that leaves data on a server has failed")]
async fn check_destroyed(destroyed: impl Future<Output = Result<(), Error>>) {
    destroyed.await.expect("the data is deleted from the server");
}

impl Kind {
    /// Returns the kind with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Self> {
        let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let found = KINDS.iter().find(|kind| kind.name == name);
        found.with_context(|| format!("unknown store `{name}`; known stores: {}", known()))
    }

    /// Returns the location of a new store. A store in a file uses this folder.
    #[must_use]
    pub fn place(&self, folder: &Path) -> Place {
        (self.place)(folder)
    }
}

/// Opens the store at a URL.
///
/// # Errors
/// If the URL names no known kind, or the store cannot be opened.
pub async fn open(url: &str) -> Result<Stores> {
    let options = StoreOptions::new().busy_timeout(TIMEOUT).connections(CONNECTIONS);
    let store = StoreUrl::parse(url)?.open(&options).await?;
    Ok(Stores { state: store.state(), streams: store.streams() })
}
