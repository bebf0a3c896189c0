//! The options of `cargo xtask frontends`: which tests to run, and on which stores.

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: cargo xtask frontends [--only stories|ag-ui|chat] \
                     [--store memory|sqlite|postgres|redis|all] [--runtime local|durable|temporal]";

/// A set of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    /// Recorded responses, played to the clients.
    Stories,
    /// The client of AG-UI with a server.
    AgUi,
    /// The page with `useChat` in a browser, with a server.
    Chat,
}

impl Suite {
    pub(super) const ALL: [Self; 3] = [Self::Stories, Self::AgUi, Self::Chat];

    fn name(self) -> &'static str {
        match self {
            Self::Stories => "stories",
            Self::AgUi => "ag-ui",
            Self::Chat => "chat",
        }
    }

    /// Returns the files of tests with a server.
    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Self::Stories => &[],
            Self::AgUi => &["ag-ui.test.mjs", "ag-ui-return.test.mjs"],
            Self::Chat => &["chat.test.mjs", "chat-return.test.mjs"],
        }
    }
}

/// The store of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Memory,
    Sqlite,
    Postgres,
    Redis,
}

/// A server that a store needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Server {
    /// The name for `cargo xtask servers`.
    pub(super) name: &'static str,
    /// The variable with its URL.
    pub(super) variable: &'static str,
}

impl Store {
    pub(super) const ALL: [Self; 4] = [Self::Memory, Self::Sqlite, Self::Postgres, Self::Redis];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Redis => "redis",
        }
    }

    /// Returns the server of a store that needs one.
    pub(super) fn server(self) -> Option<Server> {
        let variable = match self {
            Self::Memory | Self::Sqlite => return None,
            Self::Postgres => "HELIX_TEST_POSTGRES_URL",
            Self::Redis => "HELIX_TEST_REDIS_URL",
        };
        Some(Server { name: self.name(), variable })
    }
}

/// The runtime of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runtime {
    Local,
    Durable,
    Temporal,
}

impl Runtime {
    const ALL: [Self; 3] = [Self::Local, Self::Durable, Self::Temporal];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Durable => "durable",
            Self::Temporal => "temporal",
        }
    }

    /// Returns the server of a runtime with an engine.
    pub(super) fn server(self) -> Option<Server> {
        match self {
            Self::Local => None,
            Self::Durable => Store::Postgres.server(),
            Self::Temporal => {
                Some(Server { name: "temporal", variable: "HELIX_TEST_TEMPORAL_URL" })
            }
        }
    }
}

/// The selected tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) suites: Vec<Suite>,
    pub(super) stores: Vec<Store>,
    pub(super) runtime: Runtime,
}

impl Options {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self {
            suites: Suite::ALL.to_vec(),
            stores: vec![Store::Sqlite],
            runtime: Runtime::Local,
        };
        let mut args = args.iter();
        while let Some(option) = args.next() {
            let mut value =
                || args.next().with_context(|| format!("{option} takes a value; {USAGE}"));
            match *option {
                "--only" => {
                    let name = *value()?;
                    let suite = Suite::ALL.into_iter().find(|suite| suite.name() == name);
                    options.suites =
                        vec![suite.with_context(|| format!("unknown tests `{name}`; {USAGE}"))?];
                }
                "--store" => {
                    let name = *value()?;
                    options.stores = Store::ALL
                        .into_iter()
                        .filter(|store| name == "all" || store.name() == name)
                        .collect();
                    if options.stores.is_empty() {
                        bail!("unknown store `{name}`; {USAGE}");
                    }
                }
                "--runtime" => {
                    let name = *value()?;
                    let found = Runtime::ALL.into_iter().find(|runtime| runtime.name() == name);
                    options.runtime =
                        found.with_context(|| format!("unknown runtime `{name}`; {USAGE}"))?;
                }
                _ => bail!("unknown option `{option}`; {USAGE}"),
            }
        }
        Ok(options)
    }
}
