//! A plan that says `response` is not awaited to its end. Tested with a real server that streams
//! slowly.

use helix_agents_core::session::RunStatus;
use helix_agents_llm::{ModelServer, ModelServerOptions};
use helix_agents_planner::{PlanOptions, PlanningLlm, RoundState, Stop};
use helix_agents_test::within;
use serde_json::{Value, json};

use crate::support::server::{Ended, Play, serve};
use crate::support::{Heard, begin, run, runtime, shout, shouting, teller};

fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(4).map(|piece| piece.iter().collect()).collect()
}

fn model(url: &str) -> ModelServer {
    ModelServer::new(ModelServerOptions::new("local", url).with_api_key("none")).unwrap()
}

#[tokio::test]
async fn a_response_closes_the_connection_as_soon_as_it_is_certain() {
    let plan = Play::AndWait(pieces(r#"{"next_action": "response", "execution_comm"#));
    let (url, mut ended) = serve(vec![plan, Play::Whole(pieces("the answer"))]).await;
    let agent = teller().model("local:m").tool(shout(&Heard::default())).build().unwrap();
    let llm =
        PlanningLlm::new(model(&url)).plan(agent.definition(), PlanOptions::default()).unwrap();
    let runtime = runtime(llm);
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.status, RunStatus::Completed, "{:?}", result.error);
    assert_eq!(result.output.unwrap().to_value(), "the answer");
    assert_eq!(within(ended.recv()).await, Some(Ended::Waiting));
    assert_eq!(within(ended.recv()).await, Some(Ended::Closed));
    assert_eq!(within(ended.recv()).await, Some(Ended::Served));
    assert_eq!(RoundState::of(session.transcript()).stopped, Some(Stop::Response));
}

/// The commands come after `next_action`, and all of them are executed.
#[tokio::test]
async fn any_other_action_is_waited_for() {
    let plan = |next: &str, commands: &[Value]| {
        let plan = json!({ "next_action": next, "execution_commands": commands });
        Play::Whole(pieces(&plan.to_string()))
    };
    let execute = plan("execute", &[shouting("say it", "hey"), shouting("again", "ho")]);
    let answer = Play::Whole(pieces("the answer"));
    let (url, mut ended) = serve(vec![execute, plan("response", &[]), answer]).await;
    let heard = Heard::default();
    let agent = teller().model("local:m").tool(shout(&heard)).build().unwrap();
    let llm =
        PlanningLlm::new(model(&url)).plan(agent.definition(), PlanOptions::default()).unwrap();
    let (result, session, _) = run(&runtime(llm), &agent, "go").await;
    assert_eq!(result.status, RunStatus::Completed, "{:?}", result.error);
    assert_eq!(within(ended.recv()).await, Some(Ended::Served));
    let mut heard = heard.lock().unwrap().clone();
    heard.sort();
    assert_eq!(heard, ["hey", "ho"]);
    assert_eq!(RoundState::of(session.transcript()).stopped, Some(Stop::Response));
}

/// If the caller disconnects, the connection is closed.
#[tokio::test]
async fn a_cancelled_plan_closes_the_connection() {
    let plan = Play::AndWait(pieces(r#"{"next_action": "execute", "execution_comm"#));
    let (url, mut ended) = serve(vec![plan]).await;
    let agent = teller().model("local:m").tool(shout(&Heard::default())).build().unwrap();
    let llm =
        PlanningLlm::new(model(&url)).plan(agent.definition(), PlanOptions::default()).unwrap();
    let runtime = runtime(llm);
    let handle = begin(&runtime, &agent, "go").await;
    assert_eq!(within(ended.recv()).await, Some(Ended::Waiting));
    handle.abort(None).await.unwrap();
    assert_eq!(within(ended.recv()).await, Some(Ended::Closed));
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Aborted);
}
