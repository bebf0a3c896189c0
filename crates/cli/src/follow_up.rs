//! The commands with which the user can continue, as text.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::id::SessionId;
use helix_agents::session::CallRef;

use crate::text::quoted;
use crate::{env, session_tags, storage};

/// The hint on how to resume a session of another program.
pub(crate) const ELSEWHERE: &str = "with the program that created the session";

/// A shell command for a session.
pub(crate) fn command(words: &str, session: &SessionId, db: &Path) -> String {
    format!("{} {words} {session}{}", env::program(), db_option(db))
}

/// A shell command that answers or shows a call.
pub(crate) fn answer(word: &str, call: &CallRef, db: &Path) -> String {
    let call = call.to_string();
    format!("{} approvals {word} {}{}", env::program(), quoted(&call), db_option(db))
}

/// The command that resumes a session, if this program can resume it.
pub(crate) fn resume(
    session: &SessionId,
    agent: &str,
    tags: &BTreeMap<String, String>,
    db: &Path,
) -> Option<String> {
    session_tags::is_supported(agent, tags).then(|| command("resume", session, db))
}

/// The command that resumes a root session, if this program can resume it.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) async fn resume_root(
    root: &SessionId,
    store: &AnyStore,
    db: &Path,
) -> Result<Option<String>> {
    let created = storage::head(store, root.as_str()).await?.created;
    Ok(resume(root, &created.agent, &created.tags, db))
}

/// The `--db` option for a command, or an empty string if it is not needed.
fn db_option(db: &Path) -> String {
    if storage::is_implied(db) {
        return String::new();
    }
    format!(" --db {}", quoted(&storage::shown(db)))
}
