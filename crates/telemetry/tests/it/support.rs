//! An agent whose runs are observed.

use std::sync::{Arc, Mutex, PoisonError};

use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_core::trace::TraceParent;
use helix_agents_core::usage::Usage;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_store_memory::MemoryStore;
use helix_agents_telemetry::{Span, SpanOptions, Telemetry, tree_spans};
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The id of the root session.
pub(crate) const DESK: &str = "desk-1";

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Word {
    pub(crate) word: String,
}

/// An exporter that keeps the spans.
#[derive(Debug, Clone, Default)]
pub(crate) struct Capture(Arc<Mutex<Vec<SpanData>>>);

impl Capture {
    /// Returns the exported spans, ordered by their ids.
    pub(crate) fn spans(&self) -> Vec<SpanData> {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        spans.sort_by_key(|span| span.span_context.span_id().to_bytes());
        spans
    }
}

impl SpanExporter for Capture {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

/// Returns an agent with a tool, a client tool and a sub-agent.
pub(crate) fn clerk() -> Agent {
    let look = Tool::function("look_up", "Looks up.", |input: Word, _: ToolContext| async move {
        match input.word.as_str() {
            "secret-failure" => Err(ToolError::new("secret-error")),
            word => Ok(format!("secret-result of {word}")),
        }
    });
    let poet = Agent::builder("poet").description("Writes.").system_prompt("You write.");
    let poet = poet.model("scripted").output::<Word>().build().unwrap();
    Agent::builder("clerk")
        .system_prompt("You serve.")
        .model("scripted")
        .tool(look)
        .tool(Tool::client::<Word>("ask", "Asks."))
        .sub_agent(&poet)
        .build()
        .unwrap()
}

/// Returns a turn with each kind of call: a tool, a sub-agent, a client tool, and the answer.
pub(crate) fn replies() -> [Reply; 4] {
    [
        Reply::calls([
            ("look_up", json!({ "word": "secret-argument" })),
            ("subagent__poet", json!({ "message": "secret-message" })),
        ])
        .with_usage(Usage::new(10, 2)),
        Reply::finish(json!({ "word": "secret-poem" })).with_usage(Usage::new(5, 3)),
        Reply::tool_call("ask", json!({ "word": "secret-colour" })).with_usage(Usage::new(20, 4)),
        Reply::text("secret-answer")
            .with_usage(Usage::new(30, 5).with_cached_tokens(12).with_reasoning_tokens(2)),
    ]
}

/// A store and the options of spans.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) options: SpanOptions,
    pub(crate) capture: Capture,
}

impl World {
    pub(crate) fn new(options: SpanOptions) -> Self {
        Self { store: MemoryStore::new(), options, capture: Capture::default() }
    }

    pub(crate) fn telemetry(&self) -> Telemetry {
        let builder = Telemetry::exporter(self.capture.clone());
        builder.span_options(self.options.clone()).build().unwrap()
    }

    /// Executes the turn of [`replies`]: it starts in one runtime, and is answered and resumed in another one.
    pub(crate) async fn play(&self, trace: Option<TraceParent>) {
        let telemetry = self.telemetry();
        self.play_with(&telemetry, trace).await;
        telemetry.flush().await;
        assert_eq!(telemetry.dropped(), 0);
    }

    /// Executes the turn with this observer.
    pub(crate) async fn play_with(&self, telemetry: &Telemetry, trace: Option<TraceParent>) {
        let (agent, [first, poem, ask, last]) = (clerk(), replies());
        let boot = || {
            let model = RoutingScriptedLlm::new()
                .agent("clerk", ScriptedLlm::new([first.clone(), ask.clone(), last.clone()]))
                .agent("poet", ScriptedLlm::new([poem.clone()]));
            let builder = LocalRuntime::builder().store(self.store.clone()).llm(model);
            builder.observer(telemetry.clone()).build().unwrap()
        };
        let mut options = ExecuteOptions::default().session(DESK).tag("user", "ann");
        options.trace = trace;
        let runtime = boot();
        let run = runtime.execute(agent.erased(), "secret-question".into(), options).await.unwrap();
        assert_eq!(run.result().await.unwrap().status, RunStatus::SuspendedClientTool);
        let answer = Submission::result("2.0", &json!({ "word": "secret-red" })).unwrap();
        let runtime = boot();
        let caller = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01".parse().unwrap();
        runtime.submit_tool_result(&DESK.into(), answer.trace(caller)).await.unwrap();
        let resumed = runtime.resume(agent.erased(), &DESK.into(), ResumeOptions::default()).await;
        assert_eq!(resumed.unwrap().result().await.unwrap().status, RunStatus::Completed);
    }

    /// Returns the spans of the log: those of the root session, and those of its sub-agent.
    pub(crate) async fn logged(&self) -> Vec<Span> {
        let mut spans = tree_spans(&self.store, &DESK.into(), &self.options).await.unwrap();
        spans.sort_by_key(|span| span.id.to_bytes());
        spans
    }
}

/// Executes the turn of [`replies`] and returns its spans.
pub(crate) async fn desk_spans(options: &SpanOptions) -> Vec<Span> {
    let world = World::new(options.clone());
    world.play(None).await;
    world.logged().await
}

/// Returns the span with this name.
pub(crate) fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found.next().unwrap_or_else(|| panic!("no span {name}"));
    assert!(found.next().is_none(), "several spans {name}");
    span
}
