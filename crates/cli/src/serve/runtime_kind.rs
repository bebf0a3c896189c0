//! The kinds of runtimes of `helix serve`.

use clap::ValueEnum;
use helix_agents::error::{Error, ErrorCode, Result};
use serde::Deserialize;

/// A kind of runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuntimeKind {
    /// In this process.
    #[default]
    Local,
    /// DBOS on PostgreSQL.
    Durable,
    /// A Temporal server.
    Temporal,
}

impl RuntimeKind {
    /// Checks that the address of an engine is given if the runtime needs one, and only then.
    pub(super) fn check_engine(self, server: Option<&str>) -> Result<()> {
        let message = match (self, server) {
            (Self::Local, Some(_)) => {
                "the local runtime has no engine; leave out --engine or choose another --runtime"
            }
            (Self::Durable, None) => "DBOS needs a PostgreSQL database; pass its URL with --engine",
            _ => return Ok(()),
        };
        Err(Error::new(ErrorCode::ConfigInvalid, message))
    }
}
