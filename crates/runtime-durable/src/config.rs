//! The DBOS configuration of the database and of this process.

use std::fmt;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use uuid::Uuid;

use crate::name;

/// The default schema of a PostgreSQL store.
const STORE_SCHEMA: &str = "helix_agents";

/// The executor id that DBOS assigns by default. Two processes with this id steal each other's runs.
const DEFAULT_EXECUTOR: &str = "local";

/// The configurable options of DBOS.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) app: String,
    /// The executor id. `None`: a unique generated id.
    pub(crate) executor: Option<String>,
    pub(crate) connections: u32,
    pub(crate) max_runs: Option<usize>,
    pub(crate) poll_interval: Duration,
    pub(crate) keep_history: Duration,
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: String::new(),
            schema: "helix_dbos".to_owned(),
            app: "helix-agents".to_owned(),
            executor: None,
            connections: 10,
            max_runs: None,
            poll_interval: Duration::from_secs(1),
            keep_history: Duration::from_secs(60 * 60),
        }
    }
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("schema", &self.schema)
            .field("app", &self.app)
            .field("executor", &self.executor)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Checks the options.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] with a message that explains how to correct the options.
    pub(crate) fn check(&self) -> Result<()> {
        let invalid = |message: String| Err(Error::new(ErrorCode::ConfigInvalid, message));
        if self.url.is_empty() {
            return invalid("the runtime has no database; call `database`".to_owned());
        }
        let scheme = self.url.split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("postgres" | "postgresql")) {
            return invalid("the database's URL does not start with `postgres://`".to_owned());
        }
        if let Some(problem) = name::problem_of_schema(&self.schema) {
            return invalid(format!("the schema `{}` {problem}", self.schema.escape_debug()));
        }
        if self.schema == STORE_SCHEMA {
            return invalid(format!(
                "the schema `{STORE_SCHEMA}` contains the sessions; use a separate schema for DBOS"
            ));
        }
        if let Some(problem) = name::problem_of_app(&self.app) {
            return invalid(format!("the application's name {problem}"));
        }
        if self.executor.as_deref().is_some_and(|id| id.is_empty() || id == DEFAULT_EXECUTOR) {
            return invalid(format!(
                "an executor id must not be empty or `{DEFAULT_EXECUTOR}`, which is DBOS's default for all \
                 processes; use a name that is stable across restarts and unique among running processes, such as a \
                 pod name, or omit it"
            ));
        }
        if self.connections < 2 {
            return invalid("DBOS needs at least 2 connections".to_owned());
        }
        if self.max_runs == Some(0) {
            return invalid("`max_runs` must be at least 1".to_owned());
        }
        if self.poll_interval.is_zero() {
            return invalid("`poll_interval` must not be zero".to_owned());
        }
        Ok(())
    }

    /// Converts the options to a DBOS configuration for workflows whose body has this version.
    pub(crate) fn to_dbos(&self, body: u32) -> dbos::Config {
        let own = || format!("{}-{}", self.app, Uuid::now_v7().simple());
        dbos::Config {
            // The version of the body, not of the build: any build with the same body can continue a run. It
            // must be unique among the applications of a schema.
            app_version: Some(format!("{}-run-{}", self.app, body)),
            executor_id: Some(self.executor.clone().unwrap_or_else(own)),
            max_connections: self.connections,
            schema: self.schema.clone(),
            // The runtime neither sends messages nor sets events.
            use_listen_notify: false,
            // DBOS always polls its internal queue of recovered workflows. The runtime uses no other queues.
            listen_queues: Some(Vec::new()),
            outcome_poll_interval: Some(self.poll_interval),
            ..dbos::Config::new(self.app.clone(), self.url.clone())
        }
    }
}
