//! The tools by themselves, without an agent.

use std::sync::Arc;

use helix_agents::id::CallId;
use helix_agents::stream::ChunkKind;
use helix_agents::tool::{ToolContext, ToolContextConfig, ToolFunction, ToolStream};
use serde_json::{Value, json};

use super::*;

struct Nobody;

impl ToolStream for Nobody {
    fn show(&self, _kind: ChunkKind) {}
}

async fn call<T: ToolFunction>(tool: T, input: Value) -> Result<Value, String> {
    let parts = ToolContextConfig {
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
        stream: Arc::new(Nobody),
    };
    let input = serde_json::from_value(input).unwrap();
    match tool.call(input, &ToolContext::new(parts)).await {
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
async fn a_body_is_looked_up_without_what_is_not_known() {
    let haumea = call(look_up, json!({ "name": "haumea" })).await.unwrap();
    assert_eq!(haumea.get("discovered"), Some(&json!(2004)));
    assert_eq!((haumea.get("radius_km"), haumea.get("discoverer")), (None, None));
}

#[tokio::test]
async fn an_unknown_body_is_an_error_that_says_what_to_do() {
    let error = call(look_up, json!({ "name": "Vulcan" })).await.unwrap_err();
    assert_eq!(
        error,
        "there is no body named `Vulcan` in the table; list_bodies tells which there are"
    );
}

#[tokio::test]
async fn a_ranking_starts_with_the_largest_and_leaves_out_the_unknown() {
    let largest = call(rank, json!({ "property": "mass", "kind": "dwarf_planet", "limit": 9 }));
    let names: Vec<_> = largest.await.unwrap().as_array().unwrap().clone();
    let names: Vec<_> = names.iter().map(|body| body["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Eris", "Pluto", "Haumea", "Ceres"]);
}
