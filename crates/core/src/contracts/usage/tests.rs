//! Tests of usage aggregation.

use std::sync::Arc;

use expect_test::expect;
use proptest::prelude::*;

use super::{
    MAX_SESSION_SOURCES, MAX_SOURCE_BYTES, OTHER_NAMES, Usage, UsageByName, UsageEntry, UsageKind,
    UsageRollup, UsageTotals,
};
use crate::budget::{BudgetUsage, Cost};
use crate::event::ToolFinish;

fn entry(kind: UsageKind) -> UsageEntry {
    UsageEntry { run: None, step: 1, at: None, kind }
}

fn tokens(model: Option<&str>, tokens: u32, success: bool) -> UsageEntry {
    let tokens = Usage::new(tokens.into(), 1);
    let (model, cost) = (model.map(Into::into), model.map(|_| Cost(tokens.input_tokens)));
    entry(UsageKind::Tokens { model, tokens, cost, success, took_ms: 5 })
}

fn tool(tool: &str, success: bool, attempts: u32) -> UsageEntry {
    let (call, tool) = ("1.0".into(), tool.into());
    entry(UsageKind::Tool { call, tool, success, took_ms: 7, attempts })
}

fn custom(name: &str, amount: f64) -> UsageEntry {
    entry(UsageKind::Custom {
        source_type: "pages".into(),
        source_name: name.into(),
        amount,
        call: None,
        success: true,
    })
}

fn child(used: UsageRollup, success: bool) -> UsageEntry {
    child_of("s-sub-1.0", used, success)
}

fn child_of(session: &str, used: UsageRollup, success: bool) -> UsageEntry {
    entry(UsageKind::SubAgent {
        call: "1.0".into(),
        agent: "helper".into(),
        session: session.into(),
        success,
        used: Arc::new(used),
    })
}

#[test]
fn usage_is_aggregated_by_name() {
    let below = UsageRollup::of_tree(&[tokens(Some("small"), 30, true), tool("read", true, 1)]);
    let entries = [
        tokens(Some("big"), 10, true),
        tokens(Some("big"), 20, false),
        tokens(None, 0, false),
        tool("read", true, 1),
        tool("read", false, 3),
        tool("ask", true, 0),
        custom("read", 2.0),
        custom("read", 0.5),
        child(below, false),
    ];
    let text = serde_json::to_string_pretty(&UsageRollup::of_tree(&entries)).unwrap();
    expect![[r#"
        {
          "tokens": {
            "input_tokens": 60,
            "output_tokens": 4,
            "cached_tokens": 0,
            "reasoning_tokens": 0
          },
          "steps": 4,
          "tool_calls": 3,
          "cost": 60,
          "models": {
            "big": {
              "calls": 2,
              "failed": 1,
              "tokens": {
                "input_tokens": 30,
                "output_tokens": 2,
                "cached_tokens": 0,
                "reasoning_tokens": 0
              },
              "cost": 30,
              "took_ms": 10
            },
            "small": {
              "calls": 1,
              "failed": 0,
              "tokens": {
                "input_tokens": 30,
                "output_tokens": 1,
                "cached_tokens": 0,
                "reasoning_tokens": 0
              },
              "cost": 30,
              "took_ms": 5
            },
            "unknown": {
              "calls": 1,
              "failed": 1,
              "tokens": {
                "input_tokens": 0,
                "output_tokens": 1,
                "cached_tokens": 0,
                "reasoning_tokens": 0
              },
              "took_ms": 5
            }
          },
          "tools": {
            "ask": {
              "calls": 1,
              "failed": 0,
              "took_ms": 7
            },
            "read": {
              "calls": 3,
              "failed": 1,
              "took_ms": 21
            }
          },
          "sub_agents": {
            "helper": {
              "calls": 1,
              "failed": 1,
              "tokens": {
                "input_tokens": 30,
                "output_tokens": 1,
                "cached_tokens": 0,
                "reasoning_tokens": 0
              }
            }
          },
          "custom": {
            "pages": {
              "read": 2.5
            }
          },
          "custom_records": {
            "pages": {
              "read": {
                "calls": 2,
                "failed": 0
              }
            }
          }
        }"#]]
    .assert_eq(&text);
    let own = UsageRollup::of(&entries);
    assert_eq!((own.steps, own.tool_calls, own.tokens.input_tokens), (3, 2, 30));
    assert_eq!(own.tools["read"].calls, 2);
    let read: UsageRollup = serde_json::from_str(&text).unwrap();
    assert_eq!(read, UsageRollup::of_tree(&entries));
}

#[test]
fn child_usage_of_older_logs_is_read() {
    let text = r#"{"call":"1.0","outcome":{"success":1},"took_ms":0,
        "child":{"tokens":{"input_tokens":20,"output_tokens":10},"steps":2,"tool_calls":1}}"#;
    let finish: ToolFinish = serde_json::from_str(text).unwrap();
    let used = finish.child.unwrap();
    assert_eq!((used.steps, used.tool_calls, used.tokens.total()), (2, 1, 30));
}

#[test]
fn a_child_that_is_called_twice_is_counted_once() {
    let first = vec![tokens(Some("small"), 30, true)];
    let mut both = first.clone();
    both.push(tokens(Some("small"), 12, true));
    let entries = [
        child_of("one", UsageRollup::of_tree(&first), true),
        child_of("two", UsageRollup::of_tree(&first), true),
        child_of("one", UsageRollup::of_tree(&both), true),
    ];
    let tree = UsageRollup::of_tree(&entries);
    assert_eq!((tree.tokens.input_tokens, tree.steps), (72, 3));
    let helper = tree.sub_agents["helper"];
    assert_eq!((helper.calls, helper.tokens.input_tokens), (3, 72));
}

#[test]
fn a_late_earlier_report_does_not_decrease_totals() {
    let reports = [30, 12, 7].map(|input| tokens(Some("small"), input, true));
    let report = |turns: usize| child_of("one", UsageRollup::of_tree(&reports[..turns]), true);
    let entries = [report(1), report(3), report(2)];
    let (mut totals, tree) = (UsageTotals::default(), UsageRollup::of_tree(&entries));
    entries.iter().for_each(|entry| totals.add(&entry.kind, true));
    for tree in [tree, totals.tree()] {
        assert_eq!((tree.tokens.input_tokens, tree.steps), (49, 3));
        let helper = tree.sub_agents["helper"];
        assert_eq!((helper.calls, helper.tokens.input_tokens), (3, 49));
    }
}

/// Returns the totals over all names of a rollup.
fn totals(rollup: &UsageRollup) -> (u64, u64, f64, u64) {
    let amounts = rollup.custom.values().flat_map(|names| names.values());
    let records = rollup.custom_records.values().flat_map(|names| names.values());
    let models = rollup.models.values().map(|model| model.calls).sum();
    let tools = rollup.tools.values().map(|tool| tool.took_ms).sum();
    (models, tools, amounts.sum(), records.map(|records| records.calls).sum())
}

#[test]
fn many_names_are_bounded_and_totals_stay_exact() {
    let names = || (0..1000).map(|number| format!("{number:04}"));
    let entries: Vec<_> = names()
        .flat_map(|name| [tokens(Some(&name), 1, true), tool(&name, true, 1), custom(&name, 1.0)])
        .collect();
    let all = UsageRollup::of(&entries);
    let bounded = all.bounded();
    assert_eq!(totals(&bounded), totals(&all));
    assert_eq!((bounded.steps, bounded.tokens), (all.steps, all.tokens));
    let custom: usize = bounded.custom.values().map(|names| names.len()).sum();
    let sizes = (bounded.models.len(), bounded.tools.len(), custom);
    assert_eq!(sizes, (MAX_SESSION_SOURCES, MAX_SESSION_SOURCES, MAX_SESSION_SOURCES));
    assert_eq!(bounded.models["0000"].calls, 1);
    assert_eq!(bounded.models[OTHER_NAMES].calls, 751);
    assert_eq!(
        (bounded.custom[OTHER_NAMES][OTHER_NAMES], bounded.tools[OTHER_NAMES].calls),
        (751.0, 751)
    );
    assert_eq!(bounded.bounded(), bounded);
}

#[test]
fn a_long_name_is_cut_between_characters() {
    let long = "ü".repeat(MAX_SOURCE_BYTES);
    let bounded = UsageRollup::of(&[custom(&long, 2.0), tool(&long, true, 1)]).bounded();
    let name = bounded.tools.names().next().unwrap();
    assert!(name.len() <= MAX_SOURCE_BYTES && name.ends_with("ü…"), "{name}");
    assert_eq!(bounded.custom["pages"][name], 2.0);
    assert_eq!(bounded.custom_records["pages"][name].calls, 1);
    let short = UsageRollup::of(&[custom("short", 2.0)]);
    assert_eq!(short.bounded(), short);
}

#[test]
fn a_sum_of_amounts_can_be_written_and_read_back() {
    let most = UsageRollup::of(&[custom("a", f64::MAX), custom("a", f64::MAX)]);
    let mut more = most.clone();
    more += &most;
    let text = serde_json::to_string(&more).unwrap();
    assert_eq!(serde_json::from_str::<UsageRollup>(&text).unwrap().custom["pages"]["a"], f64::MAX);
}

#[test]
fn a_rollup_has_a_row_for_each_source() {
    let entries = [
        custom("a", 2.0),
        tool("read", false, 1),
        child(UsageRollup::of_tree(&[tokens(Some("small"), 30, true)]), true),
        tokens(Some("big"), 10, true),
    ];
    let rows = UsageRollup::of(&entries).groups();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| (&*row.source_type, &*row.source_name, row.calls, row.failed, row.took_ms))
        .collect();
    let expected = [
        ("tokens", "big", 1, 0, 5),
        ("tool", "read", 1, 1, 7),
        ("sub_agent", "helper", 1, 0, 0),
        ("pages", "a", 1, 0, 0),
    ];
    assert_eq!(rows, expected);
}

fn entries() -> impl Strategy<Value = Vec<UsageEntry>> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let model = prop::option::of(name());
    let one = prop_oneof![
        (model, any::<u32>(), any::<bool>()).prop_map(|(m, n, ok)| tokens(m, n, ok)),
        (name(), any::<bool>(), 0..3_u32).prop_map(|(t, ok, n)| tool(t, ok, n)),
        (name(), 0..1000_u32).prop_map(|(n, amount)| custom(n, f64::from(amount))),
    ];
    prop::collection::vec(one, 0..20)
}

proptest! {
    /// The usage of a tree is the same whether the session itself or a child caused it.
    #[test]
    fn a_parent_and_its_children_agree(above in entries(), below in entries(), deeper in entries()) {
        let lowest = UsageRollup::of_tree(&deeper);
        let mut middle = below.clone();
        middle.push(child(lowest, true));
        let mut top = above.clone();
        top.push(child(UsageRollup::of_tree(&middle), true));
        let mut tree = UsageRollup::of_tree(&top);
        tree.sub_agents = UsageByName::new();
        let all: Vec<_> = above.into_iter().chain(below).chain(deeper).collect();
        prop_assert_eq!(&tree, &UsageRollup::of(&all));
        prop_assert_eq!(BudgetUsage::of_child(&tree), BudgetUsage::of_child(&UsageRollup::of(&all)));
    }
}
