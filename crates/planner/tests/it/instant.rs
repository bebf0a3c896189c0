//! A plan that says `response` is not waited for: against a real server that streams slowly.

use helix_agents_core::session::RunStatus;
use helix_agents_llm::{OpenAiChat, OpenAiChatOptions};
use helix_agents_planner::{PlanOptions, PlanningLlm, RoundState, Stop};
use helix_agents_testkit::gate::within;

use crate::support::server::{Ended, Play, serve};
use crate::support::{Heard, begin, run, runtime, shout, teller};

fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(4).map(|piece| piece.iter().collect()).collect()
}

fn model(url: &str) -> OpenAiChat {
    OpenAiChat::new(OpenAiChatOptions::new("local", url).with_api_key("none")).unwrap()
}

#[tokio::test]
async fn a_response_closes_the_connection_as_soon_as_it_is_certain() {
    let plan = Play::AndWait(pieces(r#"{"next_action": "response", "execution_comm"#));
    let (url, mut ended) = serve(vec![plan, Play::Whole(pieces("the answer"))]).await;
    let agent = teller().model("local:m").tool(shout(&Heard::default())).build().unwrap();
    let llm = PlanningLlm::new(model(&url)).plan(&agent, PlanOptions::default()).unwrap();
    let runtime = runtime(llm);
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.status, RunStatus::Completed, "{:?}", result.error);
    assert_eq!(result.output.unwrap().to_value(), "the answer");
    assert_eq!(within(ended.recv()).await, Some(Ended::Closed));
    assert_eq!(within(ended.recv()).await, Some(Ended::Served));
    assert_eq!(RoundState::of(session.transcript()).stopped, Some(Stop::Response));
}

#[tokio::test]
async fn any_other_action_is_waited_for() {
    let plan = Play::AndWait(pieces(r#"{"next_action": "execute", "execution_comm"#));
    let (url, mut ended) = serve(vec![plan]).await;
    let agent = teller().model("local:m").tool(shout(&Heard::default())).build().unwrap();
    let llm = PlanningLlm::new(model(&url)).plan(&agent, PlanOptions::default()).unwrap();
    let runtime = runtime(llm);
    let handle = begin(&runtime, &agent, "go").await;
    // It stands there until somebody ends it.
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(200), ended.recv()).await;
    assert!(waiting.is_err(), "{waiting:?}");
    handle.abort(None).await.unwrap();
    assert_eq!(within(ended.recv()).await, Some(Ended::Closed));
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Aborted);
}
