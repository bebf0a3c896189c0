//! The tags with which sessions of this program record their agent and their model.

use std::collections::BTreeMap;

use helix_agents::agent_file::RecordedFile;

/// The tag that records the model's name.
pub(crate) const MODEL: &str = "model";

/// The name of the assistant of `helix chat`.
pub(crate) const ASSISTANT: &str = "assistant";

/// Returns `true` if `helix demo` created the session.
pub(crate) fn is_demo(agent: &str, tags: &BTreeMap<String, String>) -> bool {
    agent == helix_agents_demo::NAME
        && tags.contains_key(MODEL)
        && RecordedFile::of_tags(tags).is_none()
}

/// Returns `true` if this program can resume the session, because it or a compatible program created it.
pub(crate) fn is_supported(agent: &str, tags: &BTreeMap<String, String>) -> bool {
    let is_built_in = [helix_agents_demo::NAME, ASSISTANT].contains(&agent);
    tags.contains_key(MODEL) && (is_built_in || RecordedFile::of_tags(tags).is_some())
}
