//! Scenarios for trace contexts: the trace that a caller gives to a turn, and what belongs to it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::event::Event;
use helix_agents_core::executor::{MessageOptions, ResumeOptions};
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Message;
use helix_agents_core::session::{RunStatus, Submission, load_events};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_core::trace::{Operation, SpanId, TraceId, TraceParent};
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    S, Word, asks, child, completes, end, fold, fold_of, helper, options, report, start_run,
    teller, word,
};
use super::{RuntimeHarness, World};

/// A scripted model that notes the trace of each request.
#[derive(Debug, Clone)]
struct TracedModel {
    script: ScriptedLlm,
    seen: Arc<Mutex<Vec<TraceParent>>>,
}

impl TracedModel {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { script: ScriptedLlm::new(replies), seen: Arc::default() }
    }

    /// Returns the traces of the requests since the last call.
    fn take(&self) -> Vec<TraceParent> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl LlmAdapter for TracedModel {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).extend(request.trace);
        self.script.generate_step(request, sink).await
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.script.check(config)
    }
}

fn trace(first: char) -> TraceParent {
    format!("00-{first}bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").parse().unwrap()
}

fn model_call(session: &str, step: u32) -> SpanId {
    SpanId::of(&session.into(), Operation::ModelCall { step })
}

/// The model calls of a turn and of its sub-agents belong to the trace of the caller. A turn without a caller's trace has
/// one of its own.
pub async fn a_turn_belongs_to_the_trace_of_its_caller(harness: &impl RuntimeHarness) {
    let model = TracedModel::new([asks(&["helper"]), Reply::text("Found."), Reply::text("Bye.")]);
    let below = TracedModel::new([report()]);
    let helper = helper("helper").adapter(below.clone()).build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let executor = harness.boot(World::new(model.clone()).registered(&agent)).await;
    let given = trace('a');
    let started = executor.execute(agent.erased(), "go".into(), options().trace(given)).await;
    completes(&started.unwrap()).await;
    let child = child("1.0");
    assert_eq!(model.take(), [1, 2].map(|step| given.with_span(model_call(S, step))));
    assert_eq!(below.take(), [given.with_span(model_call(child.as_str(), 1))]);
    assert_eq!(fold(harness).await.last_run().unwrap().trace, Some(given));
    let call = SpanId::of(&S.into(), Operation::ToolCall(&"1.0".into()));
    let parent = fold_of(harness, &child).await.parent().unwrap().clone();
    assert_eq!(parent.trace, Some(given.with_span(call)));

    completes(&start_run(&*executor, &agent, "Bye!").await).await;
    let own = TraceParent::new(TraceId::of_turn(&S.into(), 2), model_call(S, 3), true);
    assert_eq!(model.take(), [own]);
}

/// A turn that failed stays in its trace when it is resumed. After a rewind to a step of an earlier turn, the trace is the
/// one of that turn.
pub async fn a_turn_that_failed_or_was_rewound_has_its_trace(harness: &impl RuntimeHarness) {
    let fails = Reply::fails(ErrorCode::ProviderRejected);
    let model = TracedModel::new([Reply::text("One."), fails, Reply::text("Two.")]);
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(model.clone()).registered(&agent)).await;
    let [first, second, other] = ['a', 'b', 'c'].map(trace);
    for (given, status) in [(first, RunStatus::Completed), (second, RunStatus::Failed)] {
        let started = executor.execute(agent.erased(), "go".into(), options().trace(given)).await;
        assert_eq!(end(&started.unwrap()).await.status, status);
    }
    model.take();
    let resume = ResumeOptions::default().trace(other);
    completes(&executor.resume(agent.erased(), &S.into(), resume).await.unwrap()).await;
    assert!(model.take().iter().all(|seen| seen.trace() == second.trace()));

    let checkpoint = fold(harness).await.checkpoints()[0].version;
    let rewind = ResumeOptions::default().checkpoint(checkpoint);
    completes(&executor.resume(agent.erased(), &S.into(), rewind).await.unwrap()).await;
    let session = fold(harness).await;
    let run = session.last_run().unwrap().id.clone();
    assert_eq!(session.turn(), 1);
    assert_eq!(session.trace_parent(Operation::Run(&run)).trace(), first.trace());
}

/// A turn that waited stays in its trace. The log has the trace of the caller that resumed it.
pub async fn a_resumed_turn_stays_in_its_trace(harness: &impl RuntimeHarness) {
    let model = TracedModel::new([Reply::calls([("ask", word("colour"))]), Reply::text("Done.")]);
    let agent = teller().tool(Tool::client::<Word>("ask", "Asks.")).build().unwrap();
    let executor = harness.boot(World::new(model.clone()).registered(&agent)).await;
    let (given, other) = (trace('a'), trace('b'));
    let started = executor.execute(agent.erased(), "go".into(), options().trace(given)).await;
    assert_eq!(end(&started.unwrap()).await.status, RunStatus::SuspendedClientTool);
    let (answering, sending) = (trace('c'), trace('d'));
    let message = MessageOptions::default().trace(sending);
    executor.queue_message(&S.into(), "And louder.".into(), message).await.unwrap();
    let answer = Submission::result("1.0", &json!({ "word": "red" })).unwrap().trace(answering);
    executor.submit_tool_result(&S.into(), answer).await.unwrap();
    let resume = ResumeOptions::default().trace(other);
    completes(&executor.resume(agent.erased(), &S.into(), resume).await.unwrap()).await;
    assert_eq!(model.take(), [1, 2].map(|step| given.with_span(model_call(S, step))));
    let session = fold(harness).await;
    let traces: Vec<_> = session.runs().map(|run| run.trace).collect();
    assert_eq!(traces, [Some(given), Some(other)]);
    let log = load_events(&*harness.store(), &S.into(), 0).await.unwrap();
    let requests = log.iter().filter_map(|recorded| match &recorded.event {
        Event::Submitted { trace, .. } | Event::MessageQueued { trace, .. } => Some(*trace),
        _ => None,
    });
    assert_eq!(requests.collect::<Vec<_>>(), [Some(sending), Some(answering)]);
}

/// A tool passes on the trace of its turn, with the span of its call as the parent.
pub async fn a_tool_has_the_trace_of_its_call(harness: &impl RuntimeHarness) {
    let report = Tool::function("report", "Reports.", |_: Word, cx: ToolContext| async move {
        Ok::<_, ToolError>(cx.trace_parent().map(|trace| trace.to_string()))
    });
    let agent = teller().tool(report).build().unwrap();
    let script = [Reply::tool_call("report", word("trace")), Reply::text("Done.")];
    let executor = harness.boot(World::new(ScriptedLlm::new(script)).registered(&agent)).await;
    let given = trace('a');
    let started = executor.execute(agent.erased(), "go".into(), options().trace(given)).await;
    completes(&started.unwrap()).await;
    let call = SpanId::of(&S.into(), Operation::ToolCall(&"1.0".into()));
    let session = fold(harness).await;
    let results = session.transcript().iter().filter_map(|message| match &**message {
        Message::Tool(result) => Some(result.content.clone()),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [format!("\"{}\"", given.with_span(call))]);
}
