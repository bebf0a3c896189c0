//! `helix migrate`: creates or upgrades the tables of a PostgreSQL database.

use std::path::Path;

use anyhow::Result;
use helix_agents::StoreUrl;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::prelude::PostgresStore;
use helix_agents::terminal::Screen;
use serde_json::json;

use crate::exit::Exit;
use crate::storage;

/// Runs the command.
pub(crate) async fn run(db: &Path, screen: &Screen) -> Result<Exit> {
    let StoreUrl::Postgres(url) = storage::location(db) else {
        let message = "a SQLite file is upgraded when it is opened, and Redis has no tables; choose \
                       a PostgreSQL database with --db postgres://… or HELIX_DB";
        return Err(Error::new(ErrorCode::InputInvalid, message).into());
    };
    let (before, after) = PostgresStore::builder(&url).migrate().await?;
    let db = storage::shown(db);
    if screen.is_json() {
        screen.json(&json!({ "db": db, "before": before, "schema": after }))?;
    } else if before == after {
        screen.line(format!("{db}: schema {after}, up to date"))?;
    } else if before == 0 {
        screen.line(format!("{db}: schema {after}, created"))?;
    } else {
        screen.line(format!("{db}: schema {after}, upgraded from {before}"))?;
    }
    Ok(Exit::Completed)
}
