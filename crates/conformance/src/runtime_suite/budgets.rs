//! Scenarios for budgets: the limits that end a run, their persistence across processes, and the share of
//! children.

use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::budget::{Budget, BudgetUsage, Cost, Price, PriceTable};
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, AgentResult, ResumeOptions};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookDecision, HookResult, LlmChange};
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::session::{RunStatus, Session, Submission};
use helix_agents_core::step::StopReason;
use helix_agents_core::usage::Usage;
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Report, S, all_crashed, asks, check_log, check_transcript, child, completes, end, fold,
    fold_of, helper, killed_at, options, report, resume, run, scripts, shout, start_run, submit,
    teller, until_past,
};
use super::{RuntimeHarness, World};

/// Returns a reply of 15 tokens that calls a tool.
fn call() -> Reply {
    Reply::tool_call("shout", json!({"word": "a"}))
}

fn talker() -> AgentBuilder {
    teller().tool(shout())
}

fn prices() -> PriceTable {
    PriceTable::new().model("scripted", Price::per_million(1_000.0, 10_000.0))
}

async fn resume_to_end(
    executor: &dyn AgentExecutor,
    agent: &Agent,
    budget: Option<Budget>,
) -> AgentResult {
    let mut options = ResumeOptions::default().wait(Duration::from_secs(60));
    options.budget = budget;
    let handle = executor.resume(agent.erased(), &S.into(), options).await.unwrap();
    end(&handle).await
}

/// Asserts that the run failed because of its budget, and returns the reason.
fn failure(result: &AgentResult) -> String {
    let error = result.error.clone().unwrap();
    assert!(error.is(ErrorCode::BudgetExceeded), "{error}");
    let (_, rest) = error.message.split_once(": ").unwrap();
    rest.split_once(';').unwrap().0.to_owned()
}

/// Asserts that the limit ends the run. A resume with the same limit fails without a paid call, and one with a larger
/// limit continues to the end.
async fn fails_and_resumes(
    harness: &impl RuntimeHarness,
    agent: &Agent,
    raised: Budget,
    expected: (&str, usize),
) {
    let llm = ScriptedLlm::new([call(), call(), call(), Reply::text("done")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = run(&*executor, agent, "go").await;
    assert_eq!((&*failure(&failed), llm.calls()), expected);
    let messages = fold(harness).await.transcript().len();
    let again = resume_to_end(&*executor, agent, None).await;
    assert_eq!((&*failure(&again), llm.calls()), expected, "there was a paid call");
    assert_eq!(fold(harness).await.transcript().len(), messages, "work was lost or added");
    let done = resume_to_end(&*executor, agent, Some(raised)).await;
    assert_eq!((done.status, llm.calls()), (RunStatus::Completed, 4));
}

/// The token limit is checked before each model call, so the call that reaches it is the last one. A resume with a
/// larger budget continues the run.
pub async fn a_budget_of_tokens_ends_the_run_until_it_is_raised(harness: &impl RuntimeHarness) {
    let agent = talker().budget(Budget::new().tokens(30)).build().unwrap();
    let raised = Budget::new().tokens(1000);
    fails_and_resumes(harness, &agent, raised, ("tokens, 30 used of 30", 2)).await;
}

/// The step limit counts the steps of all runs of a session. A run that has reached it fails, and a resume with a
/// larger budget continues.
pub async fn a_budget_of_steps_ends_the_run_until_it_is_raised(harness: &impl RuntimeHarness) {
    let agent = talker().budget(Budget::new().steps(3)).build().unwrap();
    let raised = Budget::new().steps(4);
    fails_and_resumes(harness, &agent, raised, ("steps, 3 used of 3", 3)).await;
}

/// A run whose model calls cost more than its budget fails, and a resume with a larger budget continues it. Ten tokens
/// of input and five of output cost six cents at these prices.
pub async fn a_budget_of_money_ends_the_run_until_it_is_raised(harness: &impl RuntimeHarness) {
    let budget = Budget::new().cost(Cost::usd(0.10));
    let agent = talker().prices(prices()).budget(budget).build().unwrap();
    let raised = Budget::new().cost(Cost::usd(1.0));
    let expected = ("cost, $0.120000 used of $0.100000", 2);
    fails_and_resumes(harness, &agent, raised, expected).await;
    let used = fold(harness).await.usage().clone();
    assert_eq!((used.cost, used.models["scripted"].calls), (Cost::usd(0.24), 4));
}

/// If a reply calls more tools than the budget allows, the calls within the limit are executed and their results are
/// kept. The calls beyond the limit are not executed.
pub async fn a_budget_of_tool_calls_holds_to_the_call(harness: &impl RuntimeHarness) {
    let word = |word: &str| ("shout", json!({ "word": word }));
    let llm = ScriptedLlm::new([
        Reply::calls([word("a"), word("b")]),
        Reply::calls([word("c"), word("d")]),
        Reply::text("done"),
    ]);
    let agent = talker().budget(Budget::new().tool_calls(3)).build().unwrap();
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = run(&*executor, &agent, "go").await;
    assert_eq!(failure(&failed), "tool_calls, 3 used of 3");
    let again = resume_to_end(&*executor, &agent, None).await;
    assert_eq!((failure(&again).as_str(), llm.calls()), ("tool_calls, 3 used of 3", 2));
    let done = resume_to_end(&*executor, &agent, Some(Budget::new().tool_calls(4))).await;
    assert_eq!(done.status, RunStatus::Completed);
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None shout({"word":"a"}) shout({"word":"b"})
            tool shout "A"
            tool shout "B"
            assistant None shout({"word":"c"}) shout({"word":"d"})
            tool shout "C"
            tool shout {"error":"not run: the budget of 3 tool calls is used up"}
            assistant Some("done")
        "#]],
    )
    .await;
}

/// After the last tool call of a budget, the model is called once more and can complete the turn.
pub async fn the_last_tool_call_of_a_budget_may_be_answered(harness: &impl RuntimeHarness) {
    let llm = ScriptedLlm::new([call(), Reply::text("done")]);
    let agent = talker().budget(Budget::new().tool_calls(1)).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
}

/// Tools do not start if the reply that requests them has exhausted the budget.
pub async fn tools_do_not_start_on_a_budget_that_is_used_up(harness: &impl RuntimeHarness) {
    let llm = ScriptedLlm::new([call(), Reply::text("done")]);
    let agent = talker().budget(Budget::new().tokens(10)).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    assert_eq!(failure(&run(&*executor, &agent, "go").await), "tokens, 15 used of 10");
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "go"
            step 1 reply ToolUse in=10 out=5
              call 1.0 shout({"word":"a"})
              result 1.0 error budget_exceeded: not run: the budget is used up: tokens, 15 used of 10
            step 1 closed
            end failed budget_exceeded: the budget is used up: tokens, 15 used of 10; resume with a larger budget
        "#]],
    )
    .await;
}

/// A time budget limits the time of active runs, by the store's clock. A run that exceeds it fails, and a resume with a
/// larger budget continues.
pub async fn a_budget_of_time_ends_the_run(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let script = || ScriptedLlm::new([call().at_gate(&gate), call(), Reply::text("done")]);
    // Long enough to reach the model on a busy machine through a server.
    let limit = Duration::from_secs(1);
    let agent = talker().budget(Budget::new().wall_time(limit)).build().unwrap();
    let llm = script();
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    let started = fold(harness).await.last_run().unwrap().started.unwrap().0;
    until_past(harness, Timestamp(started + 1_000)).await;
    gate.open();
    let failed = end(&handle).await;
    assert!(failure(&failed).starts_with("wall_time, "), "{failed:?}");
    assert_eq!((llm.calls(), fold(harness).await.spent().tool_calls), (1, 0));
    let raised = Budget::new().wall_time(Duration::from_secs(60));
    assert_eq!(resume_to_end(&*executor, &agent, Some(raised)).await.status, RunStatus::Completed);
}

/// The time during which a session waits for a user does not count towards a time budget. The used time is the duration
/// of the runs.
pub async fn waiting_for_answers_uses_no_time_of_a_budget(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout().requires_approval()).build().unwrap();
    let llm = ScriptedLlm::new([call(), Reply::text("done")]);
    let executor = harness.boot(World::new(llm)).await;
    let suspended = run(&*executor, &agent, "go").await;
    assert_eq!(suspended.status, RunStatus::SuspendedClientTool);
    let before = fold(harness).await;
    let ended = before.last_run().unwrap().ended.unwrap();
    until_past(harness, Timestamp(ended.0 + 20)).await;
    submit(&*executor, Submission::approve("1.0")).await;
    assert_eq!(fold(harness).await.spent(), before.spent());
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    let after = fold(harness).await;
    let took = after.runs().map(|run| run.ended.unwrap().0 - run.started.unwrap().0).sum::<i64>();
    assert_eq!(after.spent().wall_time_ms, u64::try_from(took).unwrap());
    assert!(
        after.last_run().unwrap().started.unwrap().0 > ended.0 + 20,
        "the session did not wait"
    );
}

/// The tokens of a model call that failed midway count towards the budget, because they were paid for.
pub async fn failed_model_calls_count(harness: &impl RuntimeHarness) {
    let broken = || Reply::breaks_off(ErrorCode::ProviderStreamCut, "I was about to");
    let llm = ScriptedLlm::new([broken(), broken(), Reply::text("done")]);
    let agent = talker().budget(Budget::new().tokens(30)).build().unwrap();
    let executor = harness.boot(World::new(llm.clone())).await;
    assert_eq!(failure(&run(&*executor, &agent, "go").await), "tokens, 30 used of 30");
    let used = fold(harness).await.usage().clone();
    assert_eq!((used.models["scripted"].failed, used.tokens.total(), llm.calls()), (2, 30, 2));
}

/// The tokens of attempts that failed before a reply count towards the budget.
pub async fn failed_attempts_count(harness: &impl RuntimeHarness) {
    let retried = call().with_failed_attempt(ErrorCode::ProviderStreamCut, Usage::new(20, 0));
    let llm = ScriptedLlm::new([retried, Reply::text("never")]);
    let agent = talker().budget(Budget::new().tokens(35)).build().unwrap();
    let executor = harness.boot(World::new(llm.clone())).await;
    assert_eq!(failure(&run(&*executor, &agent, "go").await), "tokens, 35 used of 35");
    assert_eq!(llm.calls(), 1);
}

/// The log contains the session's own limit. Another process enforces it, and counts exactly the usage that
/// the crashed process recorded.
pub async fn a_budget_and_what_was_spent_survive_the_process(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let script = |gate: Option<&Gate>| {
        let last = gate.map_or_else(call, |gate| call().at_gate(gate));
        ScriptedLlm::new([call(), last, call(), Reply::text("done")])
    };
    let agent = talker().build().unwrap();
    let executor = harness.boot(World::new(script(Some(&gate)))).await;
    let options = options().budget(Budget::new().tokens(40));
    executor.execute(agent.erased(), "go".into(), options).await.unwrap();
    gate.reached().await;
    all_crashed(harness).await;
    let before = fold(harness).await;
    let of = |spent: BudgetUsage| (spent.steps, spent.tokens, spent.tool_calls);
    assert_eq!(of(before.spent()), (1, 15, 1));
    let llm = script(None);
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = resume_to_end(&*executor, &agent, None).await;
    assert_eq!((failure(&failed).as_str(), llm.calls()), ("tokens, 45 used of 40", 2));
    let after = fold(harness).await;
    assert_eq!(of(after.spent()), (3, 45, 2), "the tool of the last reply did not start");
    assert!(after.spent().wall_time_ms >= before.spent().wall_time_ms);
    all_crashed(harness).await;
    let executor = harness.boot(World::new(script(None))).await;
    let done = resume_to_end(&*executor, &agent, Some(Budget::new().tokens(100))).await;
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(fold(harness).await.recorded_budget(), &Budget::new().tokens(100));
}

/// `execute` refuses a cost budget for a model without a known price, because the limit cannot be enforced. The session
/// is not created.
pub async fn money_is_not_limited_without_prices(harness: &impl RuntimeHarness) {
    let executor = harness.boot(World::new(ScriptedLlm::new([Reply::text("done")]))).await;
    let agent = talker().build().unwrap();
    let options = options().budget(Budget::new().cost(Cost::usd(1.0)));
    let refused = executor.execute(agent.erased(), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    assert!(refused.message().contains("`scripted`"), "{refused}");
    assert!(harness.store().head(&S.into()).await.unwrap().is_none(), "the session was created");
}

/// A hook that chooses another model, for which the limit cannot be enforced.
#[derive(Debug)]
struct OtherModel;

#[async_trait]
impl AgentHooks for OtherModel {
    async fn before_llm_call(
        &self,
        _: &HookContext,
        config: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        let mut config = config.clone();
        config.model = "unheard-of".to_owned();
        Ok(HookDecision::Change(LlmChange::new().config(config)))
    }
}

/// A run with a cost budget fails if a hook chooses a model without a known price. The model is not called.
pub async fn a_hook_cannot_choose_a_model_without_a_price(harness: &impl RuntimeHarness) {
    let llm = ScriptedLlm::new([Reply::text("done")]);
    let budget = Budget::new().cost(Cost::usd(1.0));
    let agent = talker().prices(prices()).budget(budget).hooks(OtherModel).build().unwrap();
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = run(&*executor, &agent, "go").await;
    assert!(failed.error.unwrap().is(ErrorCode::ConfigInvalid));
    assert_eq!(llm.calls(), 0);
}

/// Returns a child that calls `shout` before it reports.
fn finder() -> Agent<Report> {
    helper("helper").tool(shout()).build().unwrap()
}

/// Asserts that the usage of a parent is its own plus that of its children.
fn assert_usage_agrees(parent: &Session, children: &[Session]) {
    let of = |spent: BudgetUsage| (spent.steps, spent.tokens, spent.tool_calls, spent.cost);
    let mut sum = BudgetUsage::of_child(parent.usage());
    for child in children {
        sum += child.spent();
    }
    assert_eq!(of(parent.spent()), of(sum));
    assert_eq!(of(parent.spent()), of(BudgetUsage::of_child(&parent.tree_usage())));
}

/// Children that start together get equal shares of the remaining budget, and their parent keeps one share. Unused
/// shares are returned to the parent.
pub async fn children_share_what_is_left_and_give_back_the_rest(harness: &impl RuntimeHarness) {
    let llm = scripts(
        [asks(&["helper", "helper"]), asks(&["helper"]), Reply::text("done")],
        [call(), report()],
    );
    let budget = Budget::new().tokens(315).tool_calls(9);
    let agent = teller().sub_agent(&finder()).budget(budget).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    let (one, two) = (fold_of(harness, &child("1.0")).await, fold_of(harness, &child("1.1")).await);
    let third = Budget::new().tokens(100).tool_calls(3);
    assert_eq!((one.recorded_budget(), two.recorded_budget()), (&third, &third));
    // 15, twice 30 and 15 are used; two of nine calls too.
    let later = fold_of(harness, &child("2.0")).await;
    assert_eq!(later.recorded_budget(), &Budget::new().tokens(112).tool_calls(3));
    let parent = fold(harness).await;
    assert_usage_agrees(&parent, &[one, two, later]);
    let tree = parent.tree_usage();
    assert_eq!((tree.steps, tree.tools["shout"].calls, tree.sub_agents["helper"].calls), (9, 3, 3));
    assert_eq!(parent.usage().tools.len(), 0, "the tools are the children's");
}

/// A child that exhausts its budget fails, and the parent's model gets the error.
pub async fn a_child_that_exhausts_its_budget_is_a_failed_call(harness: &impl RuntimeHarness) {
    let spree = Usage::new(80, 20);
    let llm = scripts(
        [asks(&["helper"]), Reply::text("It ran out.")],
        [call().with_usage(spree), report()],
    );
    let agent = teller().sub_agent(&finder()).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let options = options().budget(Budget::new().tokens(155));
    let handle = executor.execute(agent.erased(), "go".into(), options).await.unwrap();
    let result = end(&handle).await;
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    check_transcript(
        harness,
        &expect![[r#"
            user "go"
            assistant None subagent__helper({"message":"find out"})
            tool subagent__helper {"error":"the sub-agent failed: the budget is used up: tokens, 100 used of 70; resume with a larger budget"}
            assistant Some("It ran out.")
        "#]],
    )
    .await;
    let below = fold_of(harness, &child("1.0")).await;
    assert!(below.last_run().unwrap().error.as_ref().unwrap().is(ErrorCode::BudgetExceeded));
    let rollup = handle.usage().await.unwrap();
    assert_eq!((rollup.tokens.total(), rollup.sub_agents["helper"].failed), (130, 1));
    assert_usage_agrees(&fold(harness).await, &[below]);
}

/// A child keeps its share of the budget when another process continues it after a crash. The unused part is returned
/// to the parent.
pub async fn an_allowance_survives_the_process(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let script =
        || scripts([asks(&["helper"]), Reply::text("done")], [call(), report().at_gate(&gate)]);
    let budget = Budget::new().tokens(115).steps(9);
    let agent = teller().sub_agent(&finder()).budget(budget).build().unwrap();
    killed_at(harness, World::new(script()), &agent, &gate).await;
    let before = fold(harness).await;
    let allowance = Budget::new().tokens(50).steps(4);
    assert_eq!(before.reserved(), BudgetUsage::all_of(&allowance));
    let executor = harness.boot(World::new(script())).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    let below = fold_of(harness, &child("1.0")).await;
    assert_eq!(below.recorded_budget(), &allowance);
    let parent = fold(harness).await;
    assert_eq!((parent.reserved(), parent.spent().tokens), (BudgetUsage::default(), 60));
    assert_usage_agrees(&parent, &[below]);
}

/// A reply that reaches the limit and completes the turn is accepted, because no further call is needed.
pub async fn the_reply_that_reaches_the_limit_may_complete(harness: &impl RuntimeHarness) {
    let llm = ScriptedLlm::new([Reply::text("done").with_stop_reason(StopReason::EndTurn)]);
    let agent = talker().budget(Budget::new().tokens(1).steps(1)).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
}
