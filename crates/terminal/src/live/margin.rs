//! Line prefixes that identify sub-agents, whose chunks are in the same stream as those of the root
//! session.

use helix_agents_core::stream::Chunk;

use helix_agents_tools::text::shortened;

/// The separators in the ids of child sessions, between the parent's id and the call id or name.
const BELOW: [&str; 2] = ["-sub-", "-agent-"];

/// The maximum indentation level.
const MAX_LEVELS: usize = 8;

/// The maximum length of a sub-agent's name.
const MAX_NAME: usize = 40;

/// The prefix of each line of a sub-agent: its indentation and its name. Empty for the root session.
pub(super) fn margin(chunk: &Chunk) -> String {
    let id = chunk.session.as_str();
    let levels: usize = BELOW.iter().map(|below| id.matches(below).count()).sum();
    let last = BELOW.iter().filter_map(|below| Some((id.rfind(below)?, *below))).max();
    let Some((at, below)) = last else { return String::new() };
    let rest = id.get(at + below.len()..).unwrap_or_default();
    let name = match below {
        "-sub-" => format!("{} {rest}", chunk.agent),
        _ => rest.to_owned(),
    };
    let space = "  ".repeat(levels.min(MAX_LEVELS) + 1);
    format!("{space}[{}] ", shortened(&name, MAX_NAME))
}

#[cfg(test)]
mod tests;
