//! Who speaks: what children show stands in one stream with what the session at the top shows.

use helix_agents::stream::Chunk;

use crate::text::shortened;

/// What the ids of children's sessions have after those of their parents, before the call or the
/// name.
const BELOW: [&str; 2] = ["-sub-", "-agent-"];

/// How many levels are told apart.
const MOST_LEVELS: usize = 8;

/// How much of a child's name is shown.
const MOST_NAME: usize = 40;

/// What stands before each line that a child shows: how deep it is, and which. Nothing for the
/// session at the top.
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
    let space = "  ".repeat(levels.min(MOST_LEVELS) + 1);
    format!("{space}[{}] ", shortened(&name, MOST_NAME))
}

#[cfg(test)]
mod tests;
