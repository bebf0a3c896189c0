//! The stores that stories are told on, by URL. A new one is a line in [`KINDS`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use helix_agents::error::Error;
use helix_agents::store::StateStore;
use helix_agents::store_memory::MemoryStore;
use helix_agents::store_postgres::PostgresStore;
use helix_agents::store_redis::RedisStore;
use helix_agents::store_sqlite::SqliteStore;
use helix_agents::stream::StreamManager;
use helix_agents_testkit::servers::{self, Afterwards};
use helix_agents_testkit::trees::Stores;

/// A store of its own for whatever has a folder to itself. On a server nothing of it is left when
/// this is dropped.
#[derive(Debug)]
pub struct Place {
    /// Where it is.
    pub url: String,
    _gone: Option<Afterwards>,
}

/// A kind of store.
#[derive(Debug)]
pub struct Kind {
    /// Its name, with which its URLs begin.
    pub name: &'static str,
    place: fn(&Path) -> Place,
    open: fn(String) -> BoxFuture<'static, Result<Stores>>,
}

/// All kinds. What is in memory is there as often as it is opened, and each time for itself.
#[rustfmt::skip]
pub const KINDS: &[Kind] = &[
    Kind { name: "memory",   place: nowhere, open: |_| async { Ok(opened(MemoryStore::new())) }.boxed() },
    Kind { name: "sqlite",   place: file,    open: |url| async move { Ok(opened(SqliteStore::builder(url.trim_start_matches("sqlite:")).busy_timeout(PATIENCE).open().await?)) }.boxed() },
    Kind { name: "postgres", place: schema,  open: |url| async move { Ok(opened(PostgresStore::builder(&url).connections(CONNECTIONS).open().await?)) }.boxed() },
    Kind { name: "redis",    place: prefix,  open: |url| async move { Ok(opened(RedisStore::open(&url).await?)) }.boxed() },
];

/// Long, because many workers write to one file at once.
const PATIENCE: Duration = Duration::from_secs(30);

/// Few, because many workers are on one server at once.
const CONNECTIONS: usize = 2;

fn opened<S: StateStore + StreamManager + Clone>(store: S) -> Stores {
    Stores { state: Arc::new(store.clone()), streams: Arc::new(store) }
}

fn nowhere(_: &Path) -> Place {
    Place { url: "memory:".to_owned(), _gone: None }
}

fn file(folder: &Path) -> Place {
    Place { url: format!("sqlite:{}", folder.join("story.db").display()), _gone: None }
}

fn schema(_: &Path) -> Place {
    let url = format!("{}?schema={}", servers::postgres(), servers::unique());
    let store = PostgresStore::builder(&url).connections(1);
    Place { url, _gone: Some(Afterwards::new(|| gone(store.destroy()))) }
}

fn prefix(_: &Path) -> Place {
    let url = format!("{}?prefix={}", servers::redis(), servers::unique());
    let store = RedisStore::builder(&url);
    Place { url, _gone: Some(Afterwards::new(|| gone(store.destroy()))) }
}

#[expect(clippy::expect_used, reason = "a test that leaves something behind has failed")]
async fn gone(destroyed: impl Future<Output = Result<(), Error>>) {
    destroyed.await.expect("nothing is left on the server");
}

impl Kind {
    /// The kind of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<&'static Self> {
        let known = || KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        let found = KINDS.iter().find(|kind| kind.name == name);
        found.with_context(|| format!("there is no store `{name}`; known are: {}", known()))
    }

    /// A store of its own for whatever has this folder to itself.
    #[must_use]
    pub fn place(&self, folder: &Path) -> Place {
        (self.place)(folder)
    }
}

/// Opens the store at a URL.
///
/// # Errors
/// If the URL names no known kind, and the store's.
pub async fn open(url: &str) -> Result<Stores> {
    let Some((name, _)) = url.split_once(':') else {
        bail!("`{url}` is no URL of a store, such as sqlite:FILE");
    };
    (Kind::named(name)?.open)(url.to_owned()).await
}
