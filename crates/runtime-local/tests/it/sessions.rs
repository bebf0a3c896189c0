//! The handle for programs that do not run agents, beside a runtime on the same store.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{Agent, AgentRegistry, AnyAgent};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, ExecuteOptions, ForkOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::message::{Message, UserMessage};
use helix_agents_core::session::{CallRef, RunStatus, SessionReader, UsageQuery, pending_call};
use helix_agents_core::stream::StreamManager as _;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_runtime::{Sessions, Sweeper};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Reply, ScriptedLlm, within};
use serde_json::{Value, json};

fn clerk() -> AnyAgent {
    let pay = |input: Value, _: ToolContext| async { Ok::<_, ToolError>(input) };
    let pay = Tool::dynamic("pay", "Pays.", json!({"type": "object"}), pay);
    let clerk = Agent::builder("clerk").system_prompt("You pay.").model("scripted");
    clerk.tool(pay.requires_approval()).build().unwrap().erased()
}

fn runtime(store: &MemoryStore, replies: impl IntoIterator<Item = Reply>) -> LocalRuntime {
    let llm = ScriptedLlm::new(replies);
    let registry = AgentRegistry::default();
    registry.replace_erased(clerk());
    let builder = LocalRuntime::builder().store(store.clone()).llm_adapter(Arc::new(llm));
    builder.registry(registry).build().unwrap()
}

fn replies() -> [Reply; 2] {
    [Reply::tool_call("pay", json!({"cents": 5})), Reply::text("Paid.")]
}

async fn suspended(runtime: &LocalRuntime, session: &SessionId) {
    let options = ExecuteOptions::default().session(session.clone());
    let handle = runtime.execute(clerk(), "go".into(), options).await.unwrap();
    assert!(within(handle.result()).await.unwrap().status.is_suspended());
}

#[tokio::test(start_paused = true)]
async fn pending_calls_of_all_sessions_are_listed_and_found() {
    let store = MemoryStore::new();
    let sessions = Sessions::new(store.clone());
    let (first, second) = (SessionId::from("first"), SessionId::from("second"));
    for session in [&first, &second] {
        suspended(&runtime(&store, replies()), session).await;
    }
    let pending = sessions.pending_anywhere(10).await.unwrap();
    let roots: Vec<_> = pending.iter().map(|view| &view.root).collect();
    assert_eq!(roots, [&second, &first], "the newest session comes first");
    assert!(pending.iter().all(|view| !view.expired));
    let json = serde_json::to_value(&pending[0]).unwrap();
    assert_eq!(json["reference"], pending[0].reference().to_string());
    assert_eq!(sessions.pending_anywhere(1).await.unwrap(), pending[..1]);

    let call = CallRef::from(&pending[0].pending.call);
    let found = pending_call(SessionReader::of(&store), &second, &call).await.unwrap();
    assert_eq!(found, pending[0]);
    sessions.approve(&second, call.clone()).await.unwrap();
    let settled = pending_call(SessionReader::of(&store), &second, &call).await.unwrap_err();
    assert_eq!(settled.code(), ErrorCode::AlreadyAnswered);
    let unknown = pending_call(SessionReader::of(&store), &first, &"9.9".into()).await;
    assert_eq!(unknown.unwrap_err().code(), ErrorCode::CallNotFound);
}

#[tokio::test(start_paused = true)]
async fn a_program_without_a_runtime_answers_and_messages_a_session() {
    let store = MemoryStore::new();
    let (runtime, sessions) = (runtime(&store, replies()), Sessions::new(store));
    let session = SessionId::from("s");
    let unknown = sessions.pending(&session).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::SessionNotFound);
    suspended(&runtime, &session).await;

    let pending = sessions.pending(&session).await.unwrap();
    assert_eq!(pending.iter().map(|view| &*view.pending.tool).collect::<Vec<_>>(), ["pay"]);
    sessions.message_once(&session, &"m".into(), UserMessage::new("Hurry.")).await.unwrap();
    sessions.message_once(&session, &"m".into(), UserMessage::new("Hurry.")).await.unwrap();
    assert_eq!(sessions.approve(&session, pending[0].reference()).await.unwrap(), session);
    let again = sessions.deny(&session, pending[0].reference(), None).await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::AlreadyAnswered);

    let handle = runtime.resume(clerk(), &session, ResumeOptions::default()).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let found = sessions.get(&session).await.unwrap();
    let users = found.transcript().iter().filter(|message| matches!(&***message, Message::User(_)));
    assert_eq!(users.count(), 2, "the repeated message was queued once");
    let history = sessions.history(&session, 0).await.unwrap();
    assert_eq!(history.len() as u64, found.position().version);
    assert_eq!(sessions.history(&session, found.position().version).await.unwrap(), []);
    let usage = sessions.usage(&UsageQuery::default()).await.unwrap();
    assert_eq!(usage.usage.steps, 2);
}

#[tokio::test(start_paused = true)]
async fn a_program_without_a_runtime_moves_forks_and_deletes_sessions() {
    let store = MemoryStore::new();
    let runtime = runtime(&store, [Reply::text("Done.")]);
    let sessions = Sessions::new(store.clone());
    let session = SessionId::from("s");
    let options = ExecuteOptions::default().session(session.clone());
    let handle = runtime.execute(clerk(), "go".into(), options).await.unwrap();
    within(handle.result()).await.unwrap();
    let stopped = sessions.abort(&session, None).await.unwrap_err();
    assert_eq!(stopped.code(), ErrorCode::NothingToStop);

    let fork = sessions.fork(&session, &ForkOptions::default()).await.unwrap();
    let texts = async |id| sessions.get(id).await.unwrap().transcript().len();
    assert_eq!(texts(&fork).await, texts(&session).await);
    let shown = store.info(&fork).await.unwrap();
    assert!(shown.last_seq > 0, "the stream of the fork shows its interruption: {shown:?}");
    let elsewhere = Sessions::new(MemoryStore::new());
    elsewhere.import(&sessions.export(&session).await.unwrap()).await.unwrap();
    assert_eq!(elsewhere.get(&session).await.unwrap().transcript().len(), 2);
    assert!(sessions.page(&session).await.is_ok());
    assert!(sessions.delete(&session).await.unwrap());
    assert!(!sessions.delete(&session).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_sweeper_resumes_answered_sessions_until_it_is_stopped() {
    let store = MemoryStore::new();
    let replies = replies().into_iter().chain(replies());
    let (runtime, sessions) = (Arc::new(runtime(&store, replies)), Sessions::new(store));
    let (first, second) = (SessionId::from("first"), SessionId::from("second"));
    suspended(&runtime, &first).await;
    let interval = Duration::from_secs(5);
    let sweeper = Sweeper::start(Arc::<LocalRuntime>::clone(&runtime), interval);
    tokio::time::sleep(interval / 2).await;
    sessions.approve(&first, "1.0").await.unwrap();
    tokio::time::sleep(interval).await;
    let handle = runtime.handle(&first).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);

    sweeper.stop().await;
    suspended(&runtime, &second).await;
    sessions.approve(&second, "1.0").await.unwrap();
    tokio::time::sleep(interval * 3).await;
    let handle = runtime.handle(&second).await.unwrap();
    assert!(handle.result().await.unwrap().status.is_suspended());
}
