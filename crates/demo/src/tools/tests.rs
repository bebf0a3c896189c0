//! Tests of the tools without an agent.

use std::sync::Arc;

use helix_agents::id::CallId;
use helix_agents::stream::ChunkKind;
use helix_agents::tool::{ToolContext, ToolContextConfig, ToolFunction, ToolStream};
use serde_json::{Value, json};

use super::*;

struct NoStream;

impl ToolStream for NoStream {
    fn show(&self, _kind: ChunkKind) {}
}

async fn call<T: ToolFunction>(tool: T, input: Value) -> Result<Value, String> {
    let config = ToolContextConfig {
        agent: "researcher".into(),
        session: "session".into(),
        run: "run".into(),
        fencing_token: 1,
        step: 1,
        call: CallId::new(1, 0),
        tool: T::NAME.into(),
        arguments: input.to_string(),
        attempt: 1,
        timeout: None,
        cancel: Default::default(),
        state: Arc::default(),
        stream: Arc::new(NoStream),
        trace: None,
    };
    let input = serde_json::from_value(input).unwrap();
    match tool.call(input, &ToolContext::new(config)).await {
        Ok(output) => Ok(serde_json::to_value(output).unwrap()),
        Err(error) => Err(error.message().to_owned()),
    }
}

#[tokio::test]
async fn bodies_are_listed_by_kind_and_parent() {
    let moons = call(list_bodies, json!({ "kind": "moon", "parent": "Mars" })).await;
    assert_eq!(
        moons,
        Ok(json!([{ "name": "Phobos", "parent": "Mars" }, { "name": "Deimos", "parent": "Mars" }]))
    );
    let planets = call(list_bodies, json!({ "kind": "planet" })).await.unwrap();
    assert_eq!(planets.as_array().map(Vec::len), Some(8));
}

#[tokio::test]
async fn unknown_values_of_a_body_are_omitted() {
    let haumea = call(look_up, json!({ "name": "haumea" })).await.unwrap();
    assert_eq!(haumea.get("discovered"), Some(&json!(2004)));
    assert_eq!((haumea.get("radius_km"), haumea.get("discoverer")), (None, None));
}

#[tokio::test]
async fn the_error_for_an_unknown_body_has_a_hint() {
    let error = call(look_up, json!({ "name": "Vulcan" })).await.unwrap_err();
    assert_eq!(error, "the table has no body named `Vulcan`; list_bodies lists all bodies");
}

#[tokio::test]
async fn a_ranking_starts_with_the_largest_and_omits_unknown_values() {
    let largest = call(rank, json!({ "property": "mass", "kind": "dwarf_planet", "limit": 9 }));
    let names: Vec<_> = largest.await.unwrap().as_array().unwrap().clone();
    let names: Vec<_> = names.iter().map(|body| body["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Eris", "Pluto", "Haumea", "Ceres"]);
}
