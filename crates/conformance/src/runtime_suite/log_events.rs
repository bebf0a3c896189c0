//! Scenarios for log events: `tracing` events with stable names.

use std::time::Duration;

use expect_test::{Expect, expect};
use helix_agents_core::agent::{Agent, AgentBuilder, SubAgent, SubAgentInput};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::Input;
use helix_agents_core::log_events::{LOG_EVENTS, LogEvent, TARGET};
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::tool::Tool;
use helix_agents_core::trace::{Operation, SpanId, TraceId};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    S, Word, end, fold, held, killed_at, resume_to_end, run, shout, start_run, submit, until,
    until_past, word,
};
use super::{RuntimeHarness, World};
use crate::ids::batch_id;
use crate::traced::{Watch, watch};

/// A word in all arguments and answers, which no log event may contain.
const CONTENT: &str = "confidential";

/// The log events of the sessions of one agent.
struct Logged {
    agent: String,
    watch: &'static Watch,
}

impl Logged {
    /// Watches for the log events of an agent with a unique name.
    fn new() -> Self {
        let agent = format!("clerk{:x}", batch_id().0);
        let watch = watch(&agent);
        Self { agent, watch }
    }

    fn agent(&self) -> AgentBuilder {
        Agent::builder(&self.agent).system_prompt("You file.").model("scripted")
    }

    /// Returns the log events, in their order.
    fn lines(&self) -> Vec<Line> {
        let lines = self.watch.lines(&format!(" agent={} ", self.agent));
        lines.iter().filter_map(|line| Line::of(line)).collect()
    }

    /// Waits until so many log events are emitted: an append is visible before it is logged.
    async fn until(&self, count: usize) {
        until(async || self.lines().len() >= count).await;
    }

    /// Waits for the expected log events and compares them.
    async fn check(&self, harness: &impl RuntimeHarness, expected: &Expect) {
        self.until(expected.data().lines().filter(|line| !line.trim().is_empty()).count()).await;
        let lines = self.lines();
        let session = fold(harness).await;
        for line in &lines {
            line.check();
            assert_eq!(line.value("session"), Some(S), "{line:?}");
            let trace = TraceId::of_turn(&S.into(), 1).to_string();
            assert_eq!(line.value("trace_id"), Some(&*trace), "{line:?}");
            let run = line.value("run").unwrap().into();
            assert!(session.run(&run).is_some(), "{line:?}");
            let call = line.value("call").map(Into::into);
            let operation = match &call {
                None => Operation::Run(&run),
                Some(call) if line.name() == "subagent.dispatch_failed" => {
                    Operation::ToolCall(call)
                }
                Some(call) => Operation::Wait(call),
            };
            let span = SpanId::of(&S.into(), operation).to_string();
            assert_eq!(line.value("span_id"), Some(&*span), "{line:?}");
        }
        let lines: String = lines.iter().map(Line::short).collect();
        expected.assert_eq(&lines);
    }
}

/// A log event as a subscriber receives it.
#[derive(Debug)]
struct Line {
    level: String,
    fields: Vec<(String, String)>,
}

impl Line {
    /// Reads a line of the watch. Returns `None` for other events of `tracing`.
    fn of(line: &str) -> Option<Self> {
        let (level, fields) = line.split_once(&format!(" {TARGET} "))?;
        assert!(!fields.contains(CONTENT), "{line}");
        let field = |field: &str| {
            let (name, value) = field.split_once('=').unwrap();
            (name.to_owned(), value.to_owned())
        };
        Some(Self { level: level.to_owned(), fields: fields.split(' ').map(field).collect() })
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }

    fn name(&self) -> &str {
        self.value("message").unwrap()
    }

    /// Checks the level and the fields against the description of the log event.
    fn check(&self) {
        let described = LOG_EVENTS.iter().find(|event| event.name == self.name());
        let LogEvent { levels, fields, .. } = described.unwrap();
        assert!(levels.iter().any(|level| level.as_str() == self.level), "{self:?}");
        let given = self.fields.iter().map(|(name, _)| &**name).filter(|name| *name != "message");
        // Only a failed run has a code.
        let has_code = self.value("status") == Some("failed");
        let expected = fields.iter().copied().filter(|name| *name != "code" || has_code);
        assert_eq!(given.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{self:?}");
    }

    /// Returns the level, the name and the fields that are the same in every execution.
    fn short(&self) -> String {
        let mut short = format!("{} {}", self.level, self.name());
        for name in ["turn", "step", "call", "tool", "kind", "status", "code"] {
            if let Some(value) = self.value(name) {
                short.push_str(&format!(" {name}={value}"));
            }
        }
        short.push('\n');
        short
    }
}

fn ask() -> Tool {
    Tool::client::<Word>("ask", "Asks.").output_schema::<Word>()
}

fn asks() -> ScriptedLlm {
    ScriptedLlm::new([Reply::tool_call("ask", word(CONTENT)), Reply::text(CONTENT)])
}

/// Answers are refused and accepted, and other processes continue. Each append is logged once, by the process that made
/// it, also if an engine replays the run.
pub async fn a_waiting_call_and_its_answers_are_logged(harness: &impl RuntimeHarness) {
    let logged = Logged::new();
    let agent = logged.agent().tool(ask()).tool(shout().requires_approval()).build().unwrap();
    let script = ScriptedLlm::new([
        Reply::calls([("ask", word(CONTENT)), ("shout", word(CONTENT))]),
        Reply::text(CONTENT),
    ]);
    let boot = async || harness.boot(World::new(script.clone()).registered(&agent)).await;
    let executor = boot().await;
    let result = run(&*executor, &agent, CONTENT).await;
    assert_eq!(result.status, RunStatus::SuspendedClientTool);
    logged.until(4).await;
    harness.kill().await;
    let executor = boot().await;
    let wrong = Submission::result("1.0", &json!([CONTENT])).unwrap();
    let refused = executor.submit_tool_result(&S.into(), wrong).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::AnswerInvalid);
    let answer = Submission::result("1.0", &word(CONTENT)).unwrap().request("answer");
    submit(&*executor, answer.clone()).await;
    // The repetition records nothing.
    submit(&*executor, answer).await;
    submit(&*executor, Submission::deny("1.1", CONTENT.to_owned())).await;
    harness.kill().await;
    let result = resume_to_end(&*boot().await, &agent).await;
    assert_eq!(result.status, RunStatus::Completed);
    logged
        .check(
            harness,
            &expect![[r#"
        INFO run.started turn=1
        INFO client_tool.suspended turn=1 step=1 call=1.0 tool=ask kind=client
        INFO client_tool.suspended turn=1 step=1 call=1.1 tool=shout kind=approval
        INFO run.ended turn=1 status=suspended_client_tool
        WARN client_tool.validation_failed turn=1 step=1 call=1.0 tool=ask kind=client
        INFO client_tool.submitted turn=1 step=1 call=1.0 tool=ask kind=client
        INFO client_tool.submitted turn=1 step=1 call=1.1 tool=shout kind=approval
        INFO run.started turn=1
        INFO run.ended turn=1 status=completed
    "#]],
        )
        .await;
}

/// A call gets no answer before its deadline.
pub async fn an_expired_call_is_logged(harness: &impl RuntimeHarness) {
    let logged = Logged::new();
    let agent = logged.agent().tool(ask().deadline(Duration::from_millis(20))).build().unwrap();
    let executor = harness.boot(World::new(asks()).registered(&agent)).await;
    let result = run(&*executor, &agent, CONTENT).await;
    until_past(harness, result.suspended.unwrap().deadline().unwrap()).await;
    assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
    logged
        .check(
            harness,
            &expect![[r#"
        INFO run.started turn=1
        INFO client_tool.suspended turn=1 step=1 call=1.0 tool=ask kind=client
        INFO run.ended turn=1 status=suspended_client_tool
        INFO run.started turn=1
        WARN client_tool.timeout turn=1 step=1 call=1.0 tool=ask
        INFO run.ended turn=1 status=completed
    "#]],
        )
        .await;
}

/// A session that waits is aborted.
pub async fn an_aborted_call_is_logged(harness: &impl RuntimeHarness) {
    let logged = Logged::new();
    let agent = logged.agent().tool(ask()).build().unwrap();
    let executor = harness.boot(World::new(asks()).registered(&agent)).await;
    run(&*executor, &agent, CONTENT).await;
    executor.abort(&S.into(), Some(CONTENT.to_owned())).await.unwrap();
    logged
        .check(
            harness,
            &expect![[r#"
        INFO run.started turn=1
        INFO client_tool.suspended turn=1 step=1 call=1.0 tool=ask kind=client
        INFO run.ended turn=1 status=suspended_client_tool
        INFO run.started turn=1
        INFO client_tool.aborted turn=1 step=1 call=1.0 tool=ask
        INFO run.ended turn=1 status=aborted
    "#]],
        )
        .await;
}

/// A sub-agent cannot be started, and then the model fails.
pub async fn failures_are_logged_with_their_codes(harness: &impl RuntimeHarness) {
    let logged = Logged::new();
    let odd = Agent::builder("odd").description("Odd.").system_prompt("p").model("scripted");
    let odd = SubAgent::new(&odd.output::<u32>().build().unwrap());
    let odd = odd.input(|_: SubAgentInput| Input::default());
    let agent = logged.agent().sub_agent(odd).build().unwrap();
    let call = Reply::tool_call("subagent__odd", json!({ "message": CONTENT }));
    let failure = Reply::fails(ErrorCode::ProviderUnauthorized);
    let world = World::new(ScriptedLlm::new([call, failure])).registered(&agent);
    let executor = harness.boot(world).await;
    let run = start_run(&*executor, &agent, CONTENT).await;
    assert_eq!(end(&run).await.status, RunStatus::Failed);
    logged
        .check(
            harness,
            &expect![[r#"
        INFO run.started turn=1
        ERROR subagent.dispatch_failed turn=1 step=1 call=1.0 tool=subagent__odd
        WARN run.ended turn=1 status=failed code=provider_unauthorized
    "#]],
        )
        .await;
}

/// A process is killed in a tool, and another one takes over.
pub async fn a_takeover_is_logged(harness: &impl RuntimeHarness) {
    let (logged, gate) = (Logged::new(), Gate::new());
    let agent = logged.agent().tool(held("hold", &gate)).build().unwrap();
    let script = [Reply::tool_call("hold", word(CONTENT)), Reply::text(CONTENT)];
    let world = || World::new(ScriptedLlm::new(script.clone())).registered(&agent);
    killed_at(harness, world(), &agent, &gate).await;
    let executor = harness.boot(world()).await;
    assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
    logged
        .check(
            harness,
            &expect![[r#"
        INFO run.started turn=1
        INFO run.started turn=1
        INFO run.taken_over turn=1
        INFO run.ended turn=1 status=completed
    "#]],
        )
        .await;
}
