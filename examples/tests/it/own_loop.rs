//! Compares the log of the custom loop with that of the local runtime, resumes runs of another
//! loop, and runs the example as a program.

use std::sync::Arc;
use std::time::Duration;

use helix_agents::agent::AnyAgent;
use helix_agents::prelude::*;
use helix_agents::session::load_events;
use helix_agents::tool::{ReconcileOutcome, Tool};
use helix_agents_conformance::normalise;
use helix_agents_examples::own_loop::OwnLoop;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::program::{example, lines};

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Notes {
    notes: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Note {
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Report {
    #[expect(dead_code, reason = "only the schema is used")]
    answer: String,
}

fn note(gate: Option<Gate>) -> Tool {
    Tool::function("note", "Takes a note.", move |note: Note, cx: ToolContext| {
        let gate = gate.clone();
        async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            cx.update_state(|state: &mut Notes| state.notes.push(note.text.clone()))?;
            Ok(note.text)
        }
    })
}

fn agent(gate: Option<Gate>) -> AnyAgent {
    let paying =
        Tool::function("pay", "Makes a payment.", |_: Note, _: ToolContext| async { Ok("paid") });
    // The start of this call is recorded before it runs.
    let paying = paying.effect(EffectClass::AtMostOnce);
    let paying = paying.reconcile(|_, _| async { ReconcileOutcome::NotExecuted });
    Agent::builder("clerk")
        .system_prompt("You take notes.")
        .state::<Notes>()
        .tool(note(gate))
        .tool(paying)
        .output::<Report>()
        .build()
        .unwrap()
        .erased()
}

/// Returns a script with the difficult cases: concurrent calls, invalid arguments, unknown tools,
/// corrections, calls next to the finish tool, and a second turn.
fn script() -> ScriptedLlm {
    let note = |text: &str| ("note", json!({ "text": text }));
    ScriptedLlm::new([
        Reply::calls([note("one"), ("pay", json!({ "text": "rent" })), note("two")]),
        Reply::calls([("note", json!({ "txt": 1 })), ("nothing", json!({}))]),
        Reply::text("I am done."),
        Reply::finish(json!({ "answer": 1 })),
        Reply::calls([("__finish__", json!({ "answer": "done" })), note("too late")]),
        Reply::finish(json!({ "answer": "again" })),
    ])
}

async fn log(store: &MemoryStore) -> String {
    normalise::log(&load_events(store, &SessionId::from("s"), 0).await.unwrap())
}

fn own_loop(store: &MemoryStore, lease: Duration) -> OwnLoop {
    OwnLoop::new(Arc::new(store.clone()), Arc::new(script()), lease)
}

#[tokio::test]
async fn it_writes_the_same_log_as_the_local_runtime() {
    let (own, local) = (MemoryStore::new(), MemoryStore::new());
    let agent = agent(None);
    let own_loop = own_loop(&own, Duration::from_secs(60));
    let runtime = LocalRuntime::builder().store(local.clone()).llm(script()).build().unwrap();
    let session = SessionId::from("s");
    for message in ["Take notes.", "Once more."] {
        let result = own_loop.execute(&agent, &session, message).await.unwrap();
        let options = ExecuteOptions::default().session("s");
        let run = runtime.execute(Arc::clone(&agent), message.into(), options).await.unwrap();
        assert_eq!(result, within(run.result()).await.unwrap());
    }
    assert_eq!(log(&own).await, log(&local).await);
}

#[tokio::test]
async fn it_continues_where_another_loop_stopped() {
    let (store, whole) = (MemoryStore::new(), MemoryStore::new());
    let session = SessionId::from("s");
    let gate = Gate::new();
    let lease = Duration::from_millis(300);
    let (blocked, stopped) = (agent(Some(gate.clone())), own_loop(&store, lease));
    tokio::select! {
        _ = stopped.execute(&blocked, &session, "Take notes.") => unreachable!("the gate is closed"),
        () = gate.reached() => {} // drops the loop during a tool call
    }
    let other = own_loop(&store, lease);
    let error = other.resume(&agent(None), &session).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::AlreadyRunning, "the lease has not expired");
    let result = within(async {
        loop {
            match other.resume(&agent(None), &session).await {
                Err(error) if error.code() == ErrorCode::AlreadyRunning => {
                    tokio::time::sleep(lease / 10).await;
                }
                resumed => break resumed.unwrap(),
            }
        }
    });
    assert_eq!(Box::pin(result).await.status, RunStatus::Completed);

    own_loop(&whole, lease).execute(&agent(None), &session, "Take notes.").await.unwrap();
    assert_eq!(
        log(&store).await,
        log(&whole).await,
        "the log is the same as without the interruption"
    );
}

#[tokio::test]
async fn the_program_adds() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut command = example(env!("CARGO_BIN_EXE_own-loop"));
        command.current_dir(folder.path());
        assert_eq!(lines(command).await, ["total: 17"]);
    }
}
