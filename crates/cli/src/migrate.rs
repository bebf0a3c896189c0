//! `helix migrate`: the tables of a database, made or brought up to date by whoever may.

use std::path::Path;

use anyhow::Result;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::prelude::PostgresStore;
use serde_json::json;

use crate::exit::Exit;
use crate::screen::Screen;
use crate::storage::{self, Place};

/// Runs the command.
pub(crate) async fn run(db: &Path, screen: &Screen) -> Result<Exit> {
    let (before, after) = match Place::of(db) {
        Place::Postgres(url) => PostgresStore::builder(url).migrate().await?,
        Place::Sqlite(_) | Place::Redis(_) => {
            let message = "a SQLite file is brought up to date by whoever opens it, and Redis has no \
                           tables; name a server's database with --db postgres://… or HELIX_DB";
            return Err(Error::new(ErrorCode::InputInvalid, message).into());
        }
    };
    let db = storage::shown(db);
    if screen.is_json() {
        screen.json(&json!({ "db": db, "before": before, "schema": after }))?;
    } else if before == after {
        screen.line(format!("{db}: schema {after}, as it should be"))?;
    } else {
        screen.line(format!("{db}: schema {after}, from {before}"))?;
    }
    Ok(Exit::Completed)
}
