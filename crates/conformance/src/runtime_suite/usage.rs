//! Scenarios for usage over sessions: it is the same on every runtime, and agrees with the logs.

use std::fmt::Write as _;

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::budget::{Cost, Price, PriceTable};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{UsageQuery, UsageReport};
use helix_agents_core::store::{MAX_PAGE, Page, SessionFilter};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_core::usage::{Usage, UsageGroup, UsageRollup};
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    S, Word, asks, check_log, checkpoints, child, completes, fold, fold_of, forked, helper, report,
    scripts, shout, start_run, teller, word,
};
use super::{RuntimeHarness, World};

/// Returns an agent with a sub-agent, and with a tool that counts pages and refuses empty input.
fn reader() -> Agent {
    let read = Tool::function("read", "Reads.", |word: Word, cx: ToolContext| async move {
        cx.record_usage("pages", 1.5);
        if word.word.is_empty() { Err(ToolError::new("nothing to read")) } else { Ok("read") }
    });
    let finder = helper("helper").tool(shout()).build().unwrap();
    let prices = PriceTable::new().model("scripted", Price::per_million(1.0, 2.0));
    teller().tool(read).sub_agent(&finder).prices(prices).build().unwrap()
}

fn reads(word: &str) -> Reply {
    Reply::tool_call("read", json!({ "word": word }))
}

async fn query(executor: &dyn AgentExecutor, filter: SessionFilter) -> UsageReport {
    executor.usage(&UsageQuery::new().filter(filter)).await.unwrap()
}

/// Returns one line per source, without times.
fn text(report: &UsageReport) -> String {
    let mut text = format!("{} sessions, {} steps\n", report.sessions, report.usage.steps);
    for group in report.usage.groups() {
        let UsageGroup { source, source_type, source_name, calls, failed, tokens, .. } = &group;
        let (kind, amount, cost) = (source.as_str(), group.amount, group.cost);
        let tokens = (tokens.input_tokens, tokens.output_tokens);
        writeln!(
            text,
            "{kind} {source_type} {source_name}: {calls} calls, {failed} failed, {tokens:?} tokens, {cost}, {amount}"
        )
        .unwrap();
    }
    text
}

/// The usage is listed by model, tool, sub-agent and custom source, over all or selected sessions. A fork
/// does not count its shared history, and the stored usage equals that of the logs.
pub async fn usage_over_sessions_is_what_their_logs_say(harness: &impl RuntimeHarness) {
    let agent = reader();
    let replies = [asks(&["helper"]), reads("a"), reads(""), Reply::text("done")];
    let shouts = Reply::tool_call("shout", json!({"word": "a"}));
    let executor = harness.boot(World::new(scripts(replies, [shouts, report()]))).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    let fork = forked(&*executor, checkpoints(harness).await[1], "fork").await;
    let other = harness.boot(World::new(ScriptedLlm::new([reads("b"), Reply::text("done")]))).await;
    let options = ExecuteOptions::default().session("other").tag("team", "b");
    completes(&other.execute(agent.erased(), "go".into(), options).await.unwrap()).await;

    let all = query(&*executor, SessionFilter::default()).await;
    expect![[r#"
        4 sessions, 8 steps
        tokens tokens scripted: 8 calls, 0 failed, (80, 40) tokens, $0.000120, 0
        tool tool read: 3 calls, 1 failed, (0, 0) tokens, $0.000000, 0
        tool tool shout: 1 calls, 0 failed, (0, 0) tokens, $0.000000, 0
        sub_agent sub_agent helper: 1 calls, 0 failed, (20, 10) tokens, $0.000000, 0
        custom tool:read pages: 3 calls, 1 failed, (0, 0) tokens, $0.000000, 4.5
    "#]]
    .assert_eq(&text(&all));

    let mut sum = UsageRollup::default();
    let sessions = [S.into(), child("1.0"), fork.clone(), SessionId::from("other")];
    for session in &sessions {
        sum += fold_of(harness, session).await.usage();
    }
    assert_eq!(all.usage, sum);
    let page = Page { after: None, limit: MAX_PAGE };
    let store = harness.store();
    for found in store.list_usage(&SessionFilter::default(), &page).await.unwrap() {
        let fold = fold_of(harness, &found.head.session).await;
        assert_eq!(found.usage.as_deref(), Some(fold.usage()), "{}", found.head.session);
    }

    let of_tree = SessionFilter::new().root(S);
    let of_tree = query(&*executor, of_tree).await;
    assert_eq!((of_tree.sessions, of_tree.usage.steps), (2, 6));
    let handle = executor.handle(&S.into()).await.unwrap();
    assert_eq!(handle.usage().await.unwrap(), of_tree.usage);
    let of_fork = SessionFilter::new().root(fork);
    let of_fork = query(&*executor, of_fork).await;
    assert_eq!((of_fork.sessions, of_fork.usage), (1, UsageRollup::default()));
    let of_helper = SessionFilter::new().agent("helper");
    assert_eq!(query(&*executor, of_helper).await.usage.tools["shout"].calls, 1);
    let tagged = query(&*other, SessionFilter::new().tag("team", "b")).await;
    assert_eq!((tagged.sessions, tagged.usage.custom["tool:read"]["pages"]), (1, 1.5));
}

/// The usage of a model call includes the attempts that failed before its reply and the tokens that were written to the
/// cache, and so does its cost. The attempts are not counted as calls.
pub async fn failed_attempts_and_cache_writes_are_added_up(harness: &impl RuntimeHarness) {
    let price = Price::per_million(1.0, 2.0).cached(0.1).cache_write(1.25);
    let prices = PriceTable::new().model("scripted", price);
    let agent = teller().tool(shout()).prices(prices).build().unwrap();
    let retried = Reply::tool_call("shout", word("a"))
        .with_usage(Usage::new(100, 5).with_cached_tokens(40).with_cache_write_tokens(30))
        .with_failed_attempt(ErrorCode::ProviderRateLimited, Usage::new(100, 0))
        .with_failed_attempt(
            ErrorCode::ProviderStreamCut,
            Usage::new(100, 2).with_cache_write_tokens(30),
        );
    let llm = ScriptedLlm::new([retried, Reply::text("done")]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    completes(&handle).await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "go"
            step 1 reply ToolUse in=100 out=5 cache_write=30
              call 1.0 shout({"word":"a"})
              failed attempt provider_rate_limited in=100 out=0
              failed attempt provider_stream_cut in=100 out=2 cache_write=30
              result 1.0 "A"
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "done"
            step 2 closed
            end completed "done"
        "#]],
    )
    .await;
    let fold = fold(harness).await;
    let used = fold.usage();
    let all = Usage::new(310, 12).with_cached_tokens(40).with_cache_write_tokens(60);
    assert_eq!((used.tokens, fold.spent().tokens), (all, 322));
    // 200 uncached, 40 cached and 60 written tokens, and 7 tokens of output, and then 10 and 5.
    let cost = Cost::usd(0.000_313);
    assert_eq!((used.cost, fold.spent().cost), (cost, cost));
    let model = used.models["scripted"];
    assert_eq!((model.calls, model.failed, model.tokens, model.cost), (2, 0, all, cost));
    assert_eq!(&handle.usage().await.unwrap(), used);
    assert_eq!(&query(&*executor, SessionFilter::default()).await.usage, used);
}
