//! The commands with which the user can continue, as text.

use std::collections::BTreeMap;

use anyhow::Result;
use helix_agents::id::SessionId;
use helix_agents::session::CallRef;

use crate::location::Location;
use crate::place::Place;
use crate::text::quoted;
use crate::{env, session_tags};

/// The hint on how to resume a session of another program.
pub(crate) const ELSEWHERE: &str = "with the program that created the session";

/// A shell command for a session.
pub(crate) fn command(words: &str, session: &SessionId, db: &Location) -> String {
    format!("{} {words} {session}{}", env::program(), db.options())
}

/// A shell command that answers or shows a call.
pub(crate) fn answer(word: &str, call: &CallRef, db: &Location) -> String {
    let call = call.to_string();
    format!("{} approvals {word} {}{}", env::program(), quoted(&call), db.options())
}

/// The command that resumes a session, if this program can resume it.
pub(crate) fn resume(
    session: &SessionId,
    agent: &str,
    tags: &BTreeMap<String, String>,
    db: &Location,
) -> Option<String> {
    // A server has the agents of its sessions.
    let is_supported = db.is_server() || session_tags::is_supported(agent, tags);
    is_supported.then(|| command("resume", session, db))
}

/// The command that resumes a root session, if this program can resume it.
///
/// # Errors
/// Returns the errors of the store.
pub(crate) async fn resume_root(
    root: &SessionId,
    place: &Place,
    db: &Location,
) -> Result<Option<String>> {
    let created = place.head(root.as_str()).await?.created;
    Ok(resume(root, &created.agent, &created.tags, db))
}
