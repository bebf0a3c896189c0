//! Tags of sessions: those with which this program records agent and model, and tags on the command line.

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

/// Parses a tag on the command line. The value may contain `=`.
pub(crate) fn parse(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it like `key=value`")?;
    Ok((key.to_owned(), value.to_owned()))
}
