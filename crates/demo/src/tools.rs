//! The tools of the demo: typed functions over the table.

use helix_agents::tool;
use helix_agents::tool::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bodies::{Body, Kind, Parent, Property, all, find};

/// Which bodies to list.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct List {
    /// The kind of body.
    kind: Kind,
    /// Only those that go around this body.
    #[serde(default)]
    parent: Parent,
}

/// Which body to look up.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct LookUp {
    /// Its name in English, for instance Titan.
    #[schemars(length(max = 40))]
    name: String,
}

/// What to rank by.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Ranking {
    /// What to compare.
    property: Property,
    /// The kind of body.
    kind: Kind,
    /// How many, the largest first.
    #[schemars(range(min = 1, max = 10))]
    limit: u8,
}

/// A body in a list.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Listed {
    name: &'static str,
    parent: Parent,
}

/// A body in a ranking.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Ranked {
    name: &'static str,
    parent: Parent,
    value: f64,
    unit: &'static str,
}

/// List the planets, dwarf planets or moons, all of them or those that go around one body.
#[tool]
pub(crate) async fn list_bodies(input: List) -> Result<Vec<Listed>, ToolError> {
    let List { kind, parent } = input;
    let around = |body: &Body| parent == Parent::Any || parent == body.parent;
    let fits = |body: &&Body| body.kind == kind && around(body);
    let listed = |body: &Body| Listed { name: body.name, parent: body.parent };
    Ok(all().iter().filter(fits).map(listed).collect())
}

/// Look up one body by its name: radius, mass, orbit and discovery.
#[tool]
pub(crate) async fn look_up(input: LookUp) -> Result<&'static Body, ToolError> {
    find(&input.name).ok_or_else(|| {
        ToolError::new(format!(
            "the table has no body named `{}`; list_bodies lists all bodies",
            input.name.trim()
        ))
    })
}

/// Rank the planets, dwarf planets or moons by radius, mass, distance from what they go around, or
/// period of the orbit, the largest first.
#[tool]
pub(crate) async fn rank(input: Ranking) -> Result<Vec<Ranked>, ToolError> {
    let Ranking { property, kind, limit } = input;
    let known = all().iter().filter(|body| body.kind == kind);
    let mut ranked: Vec<Ranked> = known
        .filter_map(|body| {
            let Body { name, parent, .. } = *body;
            Some(Ranked { name, parent, value: body.value(property)?, unit: property.unit() })
        })
        .collect();
    ranked.sort_by(|one, other| other.value.total_cmp(&one.value));
    ranked.truncate(limit.into());
    Ok(ranked)
}

#[cfg(test)]
mod tests;
