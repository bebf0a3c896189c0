//! What DBOS is told of its database and of this process.

use std::fmt;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use uuid::Uuid;

use crate::name;
use crate::workflow;

/// The schema that a PostgreSQL store has unless told.
const SCHEMA_OF_STORE: &str = "helix_agents";

/// The name that DBOS gives to a process that has none. Two processes of it steal each other's runs.
const NOBODY: &str = "local";

/// How DBOS is set up, as far as it can be chosen.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) app: String,
    /// None for a name that no process had before.
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

/// Without the URL, which may hold a password.
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
    /// That it can be used.
    ///
    /// # Errors
    /// [`ErrorCode::ConfigInvalid`], with what to do.
    pub(crate) fn check(&self) -> Result<()> {
        let invalid = |message: String| Err(Error::new(ErrorCode::ConfigInvalid, message));
        if self.url.is_empty() {
            return invalid("the runtime has no database; call `database`".to_owned());
        }
        let scheme = self.url.split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("postgres" | "postgresql")) {
            return invalid("the database's URL does not begin with `postgres://`".to_owned());
        }
        if let Some(problem) = name::problem_of_schema(&self.schema) {
            return invalid(format!("the schema `{}` {problem}", self.schema.escape_debug()));
        }
        if self.schema == SCHEMA_OF_STORE {
            return invalid(format!(
                "the schema `{SCHEMA_OF_STORE}` is that of sessions; give DBOS one of its own"
            ));
        }
        if let Some(problem) = name::problem_of_app(&self.app) {
            return invalid(format!("the application's name {problem}"));
        }
        if self.executor.as_deref().is_some_and(|id| id.is_empty() || id == NOBODY) {
            return invalid(format!(
                "an executor id must not be empty or `{NOBODY}`, which is what processes without \
                 one are called; name the slot that this process runs in, or leave it out"
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

    /// The same in DBOS's words.
    pub(crate) fn to_dbos(&self) -> dbos::Config {
        let own = || format!("{}-{}", self.app, Uuid::now_v7().simple());
        dbos::Config {
            // Of the body, not of the build: any build that has the same body can go on with a run. No
            // two applications of a schema may have the same.
            app_version: Some(format!("{}-run-{}", self.app, workflow::BODY)),
            executor_id: Some(self.executor.clone().unwrap_or_else(own)),
            max_connections: self.connections,
            schema: self.schema.clone(),
            // Nothing here sends messages or sets events.
            use_listen_notify: false,
            // The internal queue is heard always: it is where recovered workflows come from.
            listen_queues: Some(Vec::new()),
            outcome_poll_interval: Some(self.poll_interval),
            ..dbos::Config::new(self.app.clone(), self.url.clone())
        }
    }
}
