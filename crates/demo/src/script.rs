//! The built-in script, which replaces the model if there is none. Its replies are fixed; the tools that
//! it calls are real.

use std::time::Duration;

use helix_agents::test::{Reply, ScriptedLlm};
use helix_agents::usage::Usage;
use serde_json::json;

use crate::agent::QUESTION;

/// The number of characters per text chunk.
const CHUNK: usize = 6;

/// Creates a model that replies from the script, with a pause of `pace` between the chunks of a reply.
#[must_use]
pub fn script(pace: Duration) -> ScriptedLlm {
    // No model is called, so no tokens are used.
    let replies = replies().into_iter().map(|reply| reply.with_usage(Usage::default()));
    ScriptedLlm::new(replies).chunk_size(CHUNK).pace(pace)
}

fn replies() -> [Reply; 5] {
    [
        Reply::calls([
            ("rank", json!({ "property": "radius", "kind": "moon", "limit": 5 })),
            ("look_up", json!({ "name": "Mercury" })),
        ])
        .with_text(
            "To compare the moons with Mercury I need its size, and the largest moons by radius. \
             Both can be looked up at once.",
        ),
        Reply::calls([
            ("look_up", json!({ "name": "Ganymede" })),
            ("look_up", json!({ "name": "Titan" })),
            ("look_up", json!({ "name": "Callisto" })),
        ])
        .with_text(
            "Mercury has a mean radius of 2439.7 km. Ganymede with 2631.2 km and Titan with \
             2574.7 km are larger; Callisto stays just below. Now what the three weigh, and where \
             they belong.",
        ),
        Reply::tool_call("rank", json!({ "property": "mass", "kind": "moon", "limit": 3 })).with_text(
            "Mercury weighs 3.301e23 kg, more than twice as much as Ganymede with 1.4819e23 kg. A \
             ranking by mass tells whether any other moon comes closer.",
        ),
        Reply::tool_call("list_bodies", json!({ "kind": "moon", "parent": "Jupiter" })).with_text(
            "No moon is heavier than Ganymede, so none is heavier than Mercury. One more look at \
             the family that Ganymede belongs to, for the report.",
        ),
        Reply::finish(report()).with_text("The facts are together."),
    ]
}

fn report() -> serde_json::Value {
    json!({
        "question": QUESTION,
        "answer": "Two moons are larger than Mercury: Ganymede and Titan. Neither is heavier: Mercury \
                   weighs more than twice as much as Ganymede, the heaviest moon.",
        "facts": [
            { "body": "Mercury", "statement": "Mean radius 2439.7 km, mass 3.301e23 kg." },
            {
                "body": "Ganymede",
                "statement": "Moon of Jupiter: mean radius 2631.2 km, mass 1.4819e23 kg.",
            },
            {
                "body": "Titan",
                "statement": "Moon of Saturn: mean radius 2574.7 km, mass 1.3455e23 kg.",
            },
            {
                "body": "Callisto",
                "statement": "Third largest moon, with a mean radius of 2410.3 km just below Mercury.",
            },
        ],
    })
}

#[cfg(test)]
mod tests;
