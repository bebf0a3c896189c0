//! The tags with which sessions of this program record their agent and their model.

use std::collections::BTreeMap;

use crate::research;

/// The tag that records the model's name.
pub(crate) const MODEL: &str = "model";

/// The tag that records the agent file's path.
pub(crate) const AGENT_FILE: &str = "agent_file";

/// The tag that records the digest of the agent file when the session was created.
pub(crate) const AGENT_DIGEST: &str = "agent_digest";

/// The tag that records the folder of the file tools, if the user overrode it.
pub(crate) const FILES: &str = "files";

/// The name of the assistant of `helix chat`.
pub(crate) const ASSISTANT: &str = "assistant";

/// Returns `true` if `helix demo` created the session.
pub(crate) fn is_demo(agent: &str, tags: &BTreeMap<String, String>) -> bool {
    agent == research::NAME && tags.contains_key(MODEL) && !tags.contains_key(AGENT_FILE)
}

/// Returns `true` if this program can resume the session, because it or a compatible program created it.
pub(crate) fn is_supported(agent: &str, tags: &BTreeMap<String, String>) -> bool {
    let has_agent = tags.contains_key(AGENT_FILE) || [research::NAME, ASSISTANT].contains(&agent);
    has_agent && tags.contains_key(MODEL)
}
