//! Suspended runs: they keep nothing in memory, and write log lines.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use helix_agents_core::agent::{Agent, AgentRegistry, SubAgent, SubAgentInput};
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::Suspension;
use helix_agents_core::executor::{AgentExecutor, ExecuteOptions, Input, ResumeOptions};
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::store::StateStore;
use helix_agents_core::tool::Tool;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm, within};
use serde_json::{Value, json};

fn agent(deadline: Option<Duration>) -> Agent {
    let input = json!({"type": "object"});
    let ask = Tool::client_dynamic("ask", "Asks.", input).output_schema::<u32>();
    let ask = deadline.into_iter().fold(ask, Tool::deadline);
    Agent::builder("clerk").system_prompt("You ask.").model("scripted").tool(ask).build().unwrap()
}

fn runtime(store: &MemoryStore) -> LocalRuntime {
    let ask = Reply::tool_call("ask", json!({"secret": "args"}));
    let llm = ScriptedLlm::new([ask, Reply::text("So.")]);
    let known = AgentRegistry::default();
    known.replace(&agent(None));
    LocalRuntime::builder().store(store.clone()).llm(llm).registry(known).build().unwrap()
}

async fn suspend(runtime: &LocalRuntime, agent: &Agent, session: &str) -> Arc<Suspension> {
    let options = ExecuteOptions::default().session(session);
    let handle = runtime.execute(agent.erased(), "go".into(), options).await.unwrap();
    within(handle.result()).await.unwrap().suspended.unwrap()
}

/// Waits until the store's clock has passed the deadline.
async fn expires(store: &MemoryStore, session: &str, deadline: Timestamp) {
    let passed = async {
        while store.head(&session.into()).await.unwrap().unwrap().read_at <= deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(passed).await;
}

async fn tasks() -> usize {
    // Let tasks that are about to end complete.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn suspended_runs_keep_no_tasks() {
    let store = MemoryStore::default();
    let (runtime, agent) = (runtime(&store), agent(Some(Duration::from_secs(60))));
    suspend(&runtime, &agent, "first").await;
    let before = tasks().await;
    for number in 0..1000 {
        suspend(&runtime, &agent, &format!("s{number}")).await;
    }
    assert_eq!(tasks().await, before);
    let head = store.head(&"s7".into()).await.unwrap().unwrap();
    assert!(!head.is_leased(), "{head:?}");
}

/// The log output of the program.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn read(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Returns the only log line of an event.
    fn line(&self, event: &str) -> String {
        let all = self.read();
        let found: Vec<_> = all.lines().filter(|line| line.contains(event)).collect();
        assert_eq!(found.len(), 1, "{event} in {all}");
        found.first().copied().unwrap_or_default().to_owned()
    }
}

fn listen() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    (lines, tracing::subscriber::set_default(subscriber.finish()))
}

/// Returns an answer to the only call.
fn answer(value: &Value) -> Submission {
    Submission::result("1.0", value).unwrap()
}

#[tokio::test]
async fn a_pending_call_and_its_answer_are_logged_without_arguments() {
    let (lines, _guard) = listen();
    let runtime = runtime(&MemoryStore::default());
    suspend(&runtime, &agent(None), "taken").await;
    let line = lines.line("client_tool.suspended");
    assert!(line.contains("session=taken ") && line.contains("call=1.0 tool=ask"), "{line}");
    let wrong = runtime.submit_tool_result(&"taken".into(), answer(&json!("many"))).await;
    assert_eq!(wrong.unwrap_err().code(), ErrorCode::AnswerInvalid);
    let line = lines.line("client_tool.validation_failed");
    assert!(
        line.contains("WARN") && line.contains("session=taken ") && line.contains("call=1.0 "),
        "{line}"
    );
    assert_eq!(runtime.pending_calls(&"taken".into()).await.unwrap().len(), 1);
    runtime.submit_tool_result(&"taken".into(), answer(&json!(7))).await.unwrap();
    let line = lines.line("client_tool.submitted");
    assert!(line.contains("session=taken ") && line.contains("call=1.0 "), "{line}");
    assert!(!lines.read().contains("secret"), "{}", lines.read());
}

#[tokio::test]
async fn an_expired_call_is_logged() {
    let (lines, _guard) = listen();
    let store = MemoryStore::default();
    let (runtime, asks) = (runtime(&store), agent(Some(Duration::from_millis(1))));
    let deadline = suspend(&runtime, &asks, "late").await.deadline().unwrap();
    expires(&store, "late", deadline).await;
    let resumed = runtime.resume(asks.erased(), &"late".into(), ResumeOptions::default()).await;
    let ended = within(resumed.unwrap().result()).await.unwrap();
    assert_eq!(ended.status, RunStatus::Completed);
    let line = lines.line("client_tool.timeout");
    assert!(
        line.contains("WARN") && line.contains("session=late ") && line.contains("call=1.0 "),
        "{line}"
    );
    assert!(!lines.read().contains("secret"), "{}", lines.read());
}

/// The session has no active run.
#[tokio::test]
async fn an_aborted_call_is_logged() {
    let (lines, _guard) = listen();
    let runtime = runtime(&MemoryStore::default());
    suspend(&runtime, &agent(None), "given-up").await;
    runtime.abort(&"given-up".into(), None).await.unwrap();
    let line = lines.line("client_tool.aborted");
    assert!(line.contains("session=given-up ") && line.contains("call=1.0 "), "{line}");
    assert!(!lines.read().contains("secret"), "{}", lines.read());
}

#[tokio::test]
async fn a_child_that_cannot_be_started_is_logged() {
    let (lines, _guard) = listen();
    let odd = Agent::builder("odd").description("Odd.").system_prompt("p").model("scripted");
    let odd = SubAgent::new(&odd.output::<u32>().build().unwrap());
    let odd = odd.input(|_: SubAgentInput| Input::default());
    let agent = Agent::builder("boss").system_prompt("p").model("scripted").sub_agent(odd);
    let call = Reply::tool_call("subagent__odd", json!({"message": "go"}));
    let llm = ScriptedLlm::new([call, Reply::text("So.")]);
    let runtime = LocalRuntime::builder().store(MemoryStore::default()).llm(llm).build().unwrap();
    let options = ExecuteOptions::default().session("boss");
    let agent = agent.build().unwrap().erased();
    let handle = runtime.execute(agent, "go".into(), options).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let line = lines.line("subagent.dispatch_failed");
    assert!(line.contains("ERROR") && line.contains("session=boss"), "{line}");
}
