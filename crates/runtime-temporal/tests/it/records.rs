//! The histories that Temporal's server records, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm, within};
use serde_json::{Value, json};
use temporalio_client::{
    Client, UntypedWorkflow, WorkflowFetchHistoryOptions, WorkflowListOptions,
};

use crate::deployment::{Deployment, temporal};

/// Returns the texts in the histories of all workflows whose ids have this prefix, by workflow id.
pub(crate) async fn histories(prefix: &str, sessions: &[SessionId]) -> BTreeMap<String, String> {
    let client = temporal().await;
    let known = sessions.iter().map(|session| format!("{prefix}__teller__{session}"));
    let mut left: BTreeSet<String> = known.collect();
    left.extend(listed(prefix, &client).await);
    let (mut read_ids, mut histories) = (BTreeSet::new(), BTreeMap::new());
    while let Some(id) = left.pop_first() {
        read_ids.insert(id.clone());
        let workflow = client.get_workflow_handle::<UntypedWorkflow>(&*id);
        let history = workflow.fetch_history(WorkflowFetchHistoryOptions::default());
        // Some sessions have no first run of this agent, and some texts only look like workflow ids.
        let Ok(history) = history.to_json().await else { continue };
        let history = serde_json::from_slice(&history).unwrap();
        let mut texts = String::new();
        read(&history, &mut texts);
        // A history names the workflows of children.
        let named = texts.split_whitespace().filter(|word| word.starts_with(prefix));
        left.extend(named.map(str::to_owned).filter(|id| !read_ids.contains(id)));
        histories.insert(id, texts);
    }
    histories
}

/// Returns the ids of all workflows with this prefix. The server lists a workflow some time after its start, so the list
/// is read until it no longer changes.
async fn listed(prefix: &str, client: &Client) -> BTreeSet<String> {
    const PAUSE: Duration = Duration::from_millis(300);
    let query = format!("WorkflowId STARTS_WITH '{prefix}__'");
    let mut before = None;
    loop {
        let listed = client.list_workflows(&*query, WorkflowListOptions::default());
        let ids = listed.map_ok(|workflow| workflow.id().to_owned());
        let ids: BTreeSet<String> = ids.try_collect().await.unwrap();
        if before.as_ref() == Some(&ids) {
            return ids;
        }
        before = Some(ids);
        tokio::time::sleep(PAUSE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_include_resumed_runs_and_children() {
    let here = Deployment::new().await;
    let helper = Agent::builder("helper")
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .output_schema(json!({"type": "object"}))
        .build()
        .unwrap();
    let teller = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let teller = teller.sub_agent(&helper).build().unwrap();
    let agents = [teller.erased(), helper.erased()];
    let asks = Reply::tool_call("subagent__helper", json!({"message": "moon"}));
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([asks, Reply::text("done"), Reply::text("again")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!({}))]));
    let worker = here.worker(llm, &agents).await;
    for input in ["go", "go on"] {
        let options = ExecuteOptions::default().session("story");
        let handle = worker.runtime.execute(Arc::clone(&agents[0]), input.into(), options);
        let result = within(handle.await.unwrap().result()).await.unwrap();
        assert_eq!(result.status, RunStatus::Completed);
    }
    worker.shut_down().await;
    let histories = histories(&here.prefix, &["story".into()]).await;
    let runs = ["helper__story-sub-1.0", "teller__story", "teller__story__resume-1"];
    let expected = runs.map(|run| format!("{}__{run}", here.prefix));
    assert_eq!(histories.into_keys().collect::<Vec<_>>(), expected);
}

/// Appends every text of a history to `records`, with payloads decoded.
fn read(value: &Value, records: &mut String) {
    match value {
        Value::String(text) => {
            writeln!(records, "{text} {}", String::from_utf8_lossy(&decoded(text))).unwrap();
        }
        Value::Array(items) => items.iter().for_each(|item| read(item, records)),
        Value::Object(members) => members.values().for_each(|member| read(member, records)),
        _ => {}
    }
}

/// Decodes a text if it is base64.
fn decoded(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.bytes() {
        let Some(six) = LETTERS.iter().position(|known| *known == letter) else { break };
        bits = bits << 6 | six as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}
