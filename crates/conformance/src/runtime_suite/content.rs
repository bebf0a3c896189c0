//! Scenarios for the confidentiality of content: it stays in the session log, and is in no error message,
//! trace or engine record.

use std::fmt::Write as _;

use async_trait::async_trait;
use helix_agents_core::agent::AgentBuilder;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::executor::{AgentResult, Input};
use helix_agents_core::hooks::{
    AgentHooks, HookContext, HookDecision, HookResult, LlmChange, SubAgentView, ToolCallView,
};
use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::session::{RunStatus, Submission, load_events};
use helix_agents_core::store::{SessionFilter, list_all};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::support::{
    Report, S, all_crashed, asks, end, helper, report, resume, run, scripts, start_run, teller,
    word,
};
use super::{RuntimeHarness, World};
use crate::ids::batch_id;
use crate::traced::{Watch, watch};

/// Unique words, and all texts that an operator may read.
struct Markers {
    name: String,
    kept: Vec<String>,
    read: String,
    watch: &'static Watch,
}

impl Markers {
    fn new() -> Self {
        // The number of a batch id is unique among all running processes.
        let name = format!("secret{:x}", batch_id().0);
        let watch = watch(&name);
        Self { name, kept: Vec::new(), read: String::new(), watch }
    }

    /// Returns content of a conversation that must be in the log in the end.
    fn kept(&mut self, what: &str) -> String {
        let word = format!("{}{what}", self.name);
        self.kept.push(word.clone());
        word
    }

    /// Returns content that need not be in the log.
    fn dropped(&self, what: &str) -> String {
        format!("{}{what}", self.name)
    }

    /// Records an error that a caller got.
    fn error(&mut self, error: &Error) {
        writeln!(self.read, "{error} | {error:?} | {error:#?}").unwrap();
    }

    /// Asserts that a call fails, and records its error.
    fn fails<T>(&mut self, result: helix_agents_core::error::Result<T>, code: ErrorCode) {
        let error = result.err().unwrap();
        assert_eq!(error.code(), code, "{error}");
        self.error(&error);
    }

    /// Asserts that a run fails, and records its error.
    fn failed(&mut self, result: AgentResult, code: ErrorCode) {
        assert_eq!(result.status, RunStatus::Failed, "{result:?}");
        let record = result.error.clone().unwrap();
        assert!(record.is(code), "{record}");
        writeln!(self.read, "{record} | {record:?} | {record:#?}").unwrap();
        self.error(&result.into_output().unwrap_err());
    }

    /// Asserts that no recorded text contains content.
    async fn check(self, harness: &impl RuntimeHarness) {
        let store = harness.store();
        let heads = list_all(&*store, &SessionFilter::default()).await.unwrap();
        let sessions: Vec<_> = heads.iter().map(|head| head.session.clone()).collect();
        let mut logs = String::new();
        for session in &sessions {
            let events = load_events(&*store, session, 0).await.unwrap();
            logs.push_str(&serde_json::to_string(&events).unwrap());
        }
        for word in &self.kept {
            assert!(logs.contains(word), "the log has no `{word}`: {logs}");
        }
        assert!(!self.read.contains(&self.name), "errors: {}", self.read);
        assert!(!format!("{heads:?}").contains(&self.name), "{heads:?}");
        let records = harness.engine_records(&sessions).await;
        assert!(!records.contains(&self.name), "the engine: {records}");
        assert!(self.watch.events() > 0, "nothing was traced");
        let lines = self.watch.lines(&self.name);
        assert!(lines.is_empty(), "traced: {lines:#?}");
    }
}

/// Hooks that fail or refuse with a text.
struct Strict {
    text: String,
    refuses: &'static str,
}

impl Strict {
    fn fail(&self) -> HookResult {
        Err(ToolError::new(self.text.clone()))
    }
}

#[async_trait]
impl AgentHooks for Strict {
    async fn on_agent_start(&self, _: &HookContext) -> HookResult {
        self.fail()
    }

    async fn before_llm_call(
        &self,
        _: &HookContext,
        _: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        match self.refuses {
            "model" => Ok(HookDecision::Refuse(self.text.clone())),
            "failing" => Err(ToolError::new(self.text.clone())),
            _ => Ok(HookDecision::Continue),
        }
    }

    async fn before_tool(
        &self,
        _: &HookContext,
        _: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        Ok(match self.refuses {
            "tool" => HookDecision::Refuse(self.text.clone()),
            _ => HookDecision::Continue,
        })
    }

    async fn after_tool(
        &self,
        _: &HookContext,
        _: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.fail()
    }

    async fn before_sub_agent(&self, _: &HookContext, _: SubAgentView<'_>) -> HookResult {
        if self.refuses == "child" { self.fail() } else { Ok(()) }
    }
}

/// Returns a tool that returns this text, or fails with it.
fn says(name: &str, text: &str, fails: bool) -> Tool {
    let text = text.to_owned();
    Tool::dynamic(name, "Says it.", json!({"type": "object"}), move |_, _: ToolContext| {
        let text = text.clone();
        async move { if fails { Err(ToolError::new(text)) } else { Ok(Value::String(text)) } }
    })
}

/// Errors, traces and engine records do not contain arguments, results, errors of tools, or errors of hooks.
pub async fn errors_of_tools_and_hooks_repeat_no_content(harness: &impl RuntimeHarness) {
    let mut markers = Markers::new();
    let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}});
    let number = Tool::dynamic("number", "Takes a number.", schema, |input, _| async { Ok(input) });
    let agent = teller()
        .system_prompt(markers.dropped("prompt"))
        .tool(number)
        .tool(says("fails", &markers.kept("toolerror"), true))
        .tool(says("returns", &markers.kept("result"), false))
        .tool(says("misfits", &markers.kept("misfit"), false).output_schema::<u64>())
        .hooks(Strict { text: markers.dropped("hook"), refuses: "" })
        .build()
        .unwrap();
    let text = markers.kept("text");
    let replies = [
        Reply::calls([
            ("number", json!({"number": markers.kept("argument")})),
            ("fails", json!({})),
            ("returns", json!({"of": markers.kept("input")})),
            ("misfits", json!({})),
            (&*markers.kept("unknown"), json!({})),
        ])
        .with_text(&text),
        Reply::raw_call("number", &markers.kept("malformed")),
        Reply::fails(ErrorCode::ProviderUnavailable),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let said = markers.kept("said");
    markers.failed(run(&*executor, &agent, said).await, ErrorCode::ProviderUnavailable);
    markers.check(harness).await;
}

/// Errors, traces and engine records do not contain the input of sub-agents, or the reasons of hooks that refuse model
/// calls, tools and sub-agents.
pub async fn errors_of_refusals_repeat_no_content(harness: &impl RuntimeHarness) {
    let mut markers = Markers::new();
    let mut agents = Vec::new();
    for refuses in ["model", "failing", "tool", "child"] {
        let hooks = Strict { text: markers.kept(refuses), refuses };
        let tool = says("says", "x", false);
        let helper = helper("helper").build().unwrap();
        agents.push(teller().tool(tool).sub_agent(&helper).hooks(hooks).build().unwrap());
    }
    let asked = ("subagent__helper", json!({"message": {"not": markers.kept("asked")}}));
    let world = || {
        let teller = [
            Reply::tool_call("says", json!({})),
            asks(&["helper"]),
            Reply::calls([asked.clone()]),
            Reply::fails(ErrorCode::ModelError),
        ];
        World::new(scripts(teller, [report()]))
    };
    for (agent, code) in agents.iter().zip([
        ErrorCode::HookRefused,
        ErrorCode::HookRefused,
        ErrorCode::ModelError,
        ErrorCode::ModelError,
    ]) {
        let executor = harness.boot(world()).await;
        let handle = executor.execute(agent.erased(), "go".into(), Default::default()).await;
        markers.failed(end(&handle.unwrap()).await, code);
    }
    markers.check(harness).await;
}

/// A state that an earlier version of an agent wrote.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Earlier {
    card: String,
    by: std::collections::BTreeMap<String, String>,
}

/// The type with which the current version reads that state.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Present {
    card: u64,
    by: std::collections::BTreeMap<String, u64>,
}

fn stateful<T>() -> AgentBuilder
where
    T: Default + Serialize + serde::de::DeserializeOwned + JsonSchema,
{
    teller().state::<T>()
}

/// Errors, traces and engine records do not contain an invalid state. The state is given as input, or read at the start
/// or recovery of a run, or by a prompt.
pub async fn errors_of_states_repeat_no_content(harness: &impl RuntimeHarness) {
    let mut markers = Markers::new();
    let card = markers.kept("card");
    let state = |card: &str| json!({"card": card, "by": {card: card}});
    let with = |card: &str| Input::from("go").with_state(&state(card)).unwrap();
    let script = || ScriptedLlm::new([Reply::text("one"), Reply::text("two")]);
    let executor = harness.boot(World::new(script())).await;
    let (before, after) = (stateful::<Earlier>(), stateful::<Present>());
    let (before, after) = (before.build().unwrap(), after.build().unwrap());
    run(&*executor, &before, with(&card)).await;
    // A later version of the agent starts a turn.
    let started = executor.execute(after.erased(), "more".into(), super::support::options()).await;
    markers.fails(started, ErrorCode::StateInvalid);
    let given = executor.execute(after.erased(), with(&card), Default::default()).await;
    markers.fails(given, ErrorCode::InputInvalid);
    // Its prompt reads the state as another type.
    let prompted = stateful::<Value>()
        .system_prompt_of(|state: Option<Present>| format!("{state:?}"))
        .build()
        .unwrap();
    let handle =
        executor.execute(prompted.erased(), with(&card), Default::default()).await.unwrap();
    match handle.result().await {
        Ok(result) => markers.failed(result, ErrorCode::StateInvalid),
        Err(error) => markers.error(&error),
    }
    // It recovers a run of a crashed process.
    let gate = Gate::new();
    let held = ScriptedLlm::new([Reply::text("one").at_gate(&gate)]);
    let executor = harness.boot(World::new(held).short_lease()).await;
    let options = helix_agents_core::executor::ExecuteOptions::default().session("left");
    executor.execute(before.erased(), with(&card), options).await.unwrap();
    gate.reached_by(1).await;
    all_crashed(harness).await;
    let executor = harness.boot(World::new(script()).registered(&after)).await;
    executor.recover().await.unwrap();
    markers.check(harness).await;
}

/// Errors, traces and engine records do not contain an invalid output, for each way to complete a turn.
pub async fn errors_of_outputs_repeat_no_content(harness: &impl RuntimeHarness) {
    let mut markers = Markers::new();
    let output = json!({"answer": markers.kept("answer"), "score": markers.kept("score")});
    let finishing = teller().output::<Report>().build().unwrap();
    let native = teller().output::<Report>().native_output().build().unwrap();
    let tool = says("hand_in", &markers.kept("handed"), false).finish_with();
    let by_tool = teller().output::<Report>().tool(tool).build().unwrap();
    let transformed = markers.kept("transform");
    let tool = says("hand_in", "x", false).finish_with_transform(
        move |_: String| -> Result<Report, ToolError> { Err(ToolError::new(transformed.clone())) },
    );
    let by_transform = teller().output::<Report>().tool(tool).build().unwrap();
    let hand_in = || vec![Reply::tool_call("hand_in", json!({}))];
    let stories = [
        (finishing, vec![Reply::finish(output.clone()); 8], ErrorCode::OutputInvalid),
        (native, vec![Reply::output(output.clone()); 8], ErrorCode::OutputInvalid),
        (by_tool, hand_in(), ErrorCode::OutputInvalid),
        (by_transform, hand_in(), ErrorCode::FinishTransformFailed),
    ];
    for (agent, replies, code) in stories {
        let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
        let handle = executor.execute(agent.erased(), "go".into(), Default::default()).await;
        markers.failed(end(&handle.unwrap()).await, code);
    }
    // An output that is valid for its agent, but not for the type with which the caller reads it.
    let any = teller().output_schema(json!(true)).build().unwrap();
    let reply = Reply::finish(json!({"output": {"answer": markers.kept("other"), "score": "x"}}));
    let executor = harness.boot(World::new(ScriptedLlm::new([reply]))).await;
    let result = run(&*executor, &any, "go").await;
    assert_eq!(result.status, RunStatus::Completed);
    markers.fails(result.typed::<u64>(), ErrorCode::OutputInvalid);
    markers.check(harness).await;
}

/// Errors, traces and engine records do not contain invalid answers or the content of valid ones.
pub async fn errors_of_answers_repeat_no_content(harness: &impl RuntimeHarness) {
    let mut markers = Markers::new();
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Sum {
        #[serde(rename = "sum")]
        _sum: u64,
    }
    let condition = markers.dropped("condition");
    let pay = Tool::function("pay", "Pays.", |_: Sum, _: ToolContext| async move {
        Ok::<_, ToolError>("paid")
    })
    .requires_approval_if(move |_: Sum, _| Err(ToolError::new(condition.clone())))
    .editable();
    let ask = || Tool::client::<Value>("ask", "Asks.").output_schema::<Sum>();
    let agent = teller().tool(pay).tool(ask()).tool(ask().named("beg")).build().unwrap();
    let sum = json!({"sum": 1});
    let replies = [
        Reply::calls([
            ("pay", sum.clone()),
            ("ask", word(&markers.kept("question"))),
            ("beg", word("x")),
        ]),
        Reply::fails(ErrorCode::ModelError),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies)).registered(&agent)).await;
    end(&start_run(&*executor, &agent, "go").await).await;
    let wrong = json!({"sum": markers.dropped("wrong"), markers.dropped("member"): 1});
    for submission in [
        Submission::result("1.1", &wrong).unwrap(),
        Submission::approve_edited("1.0", &wrong).unwrap(),
        Submission::approve_edited("1.0", &json!(markers.dropped("text"))).unwrap(),
    ] {
        let refused = executor.submit_tool_result(&S.into(), submission).await;
        markers.fails(refused, ErrorCode::AnswerInvalid);
    }
    let by = markers.kept("person");
    for submission in [
        Submission::deny("1.0", markers.kept("denied")).by(by),
        Submission::error("1.1", markers.kept("failed")),
        Submission::result("1.2", &json!({"sum": 1, "note": markers.kept("note")})).unwrap(),
    ] {
        executor.submit_tool_result(&S.into(), submission).await.unwrap();
    }
    let resumed = resume(&*executor, &agent).await.unwrap();
    markers.failed(end(&resumed).await, ErrorCode::ModelError);
    markers.check(harness).await;
}

/// Errors, traces and engine records do not contain the messages of panics in tools, prompts and stop conditions.
pub async fn panics_repeat_no_content(harness: &impl RuntimeHarness) {
    let mut markers = Markers::new();
    let said = markers.dropped("panic");
    let (in_tool, in_prompt, in_stop) = (said.clone(), said.clone(), said);
    let tool = Tool::dynamic("dies", "Dies.", json!(true), move |_, _: ToolContext| {
        let said = in_tool.clone();
        async move { panic!("{said}") }
    });
    let prompted = teller()
        .state::<Value>()
        .system_prompt_of(move |state: Value| {
            assert!(state.is_null(), "{in_prompt}");
            "You tell.".to_owned()
        })
        .tool(tool.clone());
    let stopped = teller().state::<Value>().tool(tool).stop_when(move |_| panic!("{in_stop}"));
    for agent in [prompted.build().unwrap().erased(), stopped.build().unwrap().erased()] {
        let replies = [Reply::tool_call("dies", json!({"of": markers.dropped("argument")}))];
        let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
        let input = Input::from("go").with_state(&1).unwrap();
        let handle = executor.execute(agent, input, Default::default()).await.unwrap();
        markers.failed(end(&handle).await, ErrorCode::CodePanicked);
    }
    markers.check(harness).await;
}
