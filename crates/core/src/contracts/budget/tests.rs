//! Tests of limits, shares and prices.

use std::time::Duration;

use proptest::prelude::*;

use super::{Budget, BudgetUsage, Cost, Price, PriceTable};
use crate::testing::builder;
use crate::usage::Usage;

fn spent() -> BudgetUsage {
    BudgetUsage { steps: 3, tokens: 100, tool_calls: 5, wall_time_ms: 2_000, cost: Cost::usd(0.25) }
}

#[test]
fn each_limit_reports_usage_and_allowance() {
    let reached = |budget: Budget| budget.exceeded(&spent()).map(|limit| limit.to_string());
    let just = [
        (Budget::new().steps(3), "steps, 3 used of 3"),
        (Budget::new().tokens(99), "tokens, 100 used of 99"),
        (Budget::new().wall_time(Duration::from_secs(2)), "wall_time, 2000 ms used of 2000 ms"),
        (Budget::new().cost(Cost::usd(0.2)), "cost, $0.250000 used of $0.200000"),
    ];
    for (budget, expected) in just {
        assert_eq!(reached(budget).as_deref(), Some(expected));
    }
    let calls = Budget::new().tool_calls(5);
    assert_eq!(reached(calls), None, "the model may reply without tools");
    let exceeded = calls.tool_calls_exceeded(&spent()).unwrap();
    assert_eq!(
        exceeded.error().to_string(),
        "budget_exceeded: the budget is used up: tool_calls, 5 used of 5; resume with a larger budget"
    );
    let more = Budget::new().steps(4).tokens(101).tool_calls(6).cost(Cost::usd(0.26));
    assert_eq!((reached(more), more.tool_calls_exceeded(&spent())), (None, None));
    assert_eq!(reached(Budget::new()), None);
}

#[test]
fn unset_limits_stay_unchanged() {
    let agents = Budget::new().steps(9).tokens(100);
    let raised = Budget::new().tokens(200);
    assert_eq!(raised.or(agents), Budget::new().steps(9).tokens(200));
    assert_eq!(raised.smaller(agents), agents);
    assert_eq!(Budget::new().smaller(agents), agents);
}

#[test]
fn a_share_divides_all_but_the_time() {
    let budget = Budget::new()
        .steps(10)
        .tokens(1_000)
        .tool_calls(4)
        .wall_time(Duration::from_secs(5))
        .cost(Cost::usd(1.0));
    let share = budget.share(&spent(), 3);
    let expected = Budget::new()
        .steps(2)
        .tokens(300)
        .tool_calls(0)
        .wall_time(Duration::from_secs(3))
        .cost(Cost::usd(0.25));
    assert_eq!(share, expected);
}

proptest! {
    #[test]
    fn shares_never_exceed_the_remaining_budget(
        limit in any::<u64>(),
        used in any::<u64>(),
        parts in 1..50_u64,
    ) {
        let spent = BudgetUsage { tokens: used, ..BudgetUsage::default() };
        let share = Budget::new().tokens(limit).share(&spent, parts).tokens.unwrap();
        prop_assert!(u128::from(share) * u128::from(parts) <= u128::from(limit.saturating_sub(used)));
    }

    #[test]
    fn costs_are_added_exactly(
        calls in proptest::collection::vec((0..1_000_000_u64, 0..1_000_000_u64), 1..20),
    ) {
        let price = Price::per_million(0.15, 0.6);
        let usage = |&(input_tokens, output_tokens)| {
            Usage::new(input_tokens, output_tokens)
        };
        let (mut cost, mut all) = (Cost::default(), Usage::default());
        for call in &calls {
            cost += price.of(&usage(call));
            all += usage(call);
        }
        prop_assert_eq!(cost, price.of(&all));
    }
}

#[test]
fn cached_input_has_its_own_price() {
    let usage =
        Usage::new(1_000_000, 500_000).with_cached_tokens(400_000).with_reasoning_tokens(100_000);
    let price = Price::per_million(2.0, 8.0);
    assert_eq!(price.of(&usage), Cost::usd(6.0));
    assert_eq!(price.cached(0.5).of(&usage), Cost::usd(5.4));
    let odd = Usage::new(1, 0).with_cached_tokens(5);
    assert_eq!(
        price.of(&odd),
        Cost::usd(0.000_002),
        "cached tokens are capped at the input tokens"
    );
    assert_eq!(Price::per_million(0.0375, 0.0).of(&odd), Cost(37_500));
}

fn problems(budget: Budget, prices: PriceTable) -> String {
    let agent = builder().model("openai:gpt-5").prices(prices).budget(budget);
    agent.build().unwrap_err().message().to_owned()
}

#[test]
fn invalid_limits_are_definition_errors() {
    let zero = problems(Budget::new().tokens(0), PriceTable::new());
    assert_eq!(zero, "each limit of a `budget` must be more than zero");
    let unknown = problems(
        Budget::new().cost(Cost::usd(1.0)),
        PriceTable::new().model("gpt-5", Price::per_million(1.0, 1.0)),
    );
    assert_eq!(
        unknown,
        "agent `tester` has no price for its model `openai:gpt-5`; give it one with `prices`"
    );
    for wrong in [f64::NAN, f64::INFINITY, -1.0] {
        let table = PriceTable::new().model("openai:gpt-5", Price::per_million(1.0, wrong));
        let expected = "the price of `openai:gpt-5` must be finite and not negative";
        assert_eq!(problems(Budget::new().cost(Cost::usd(1.0)), table), expected);
    }
    assert_eq!([Cost::usd(f64::NAN), Cost::usd(-3.0)], [Cost(0); 2]);
}

#[test]
fn a_sub_agent_needs_a_price_too() {
    let prices = PriceTable::new().model("big", Price::per_million(1.0, 1.0));
    let below = crate::agent::Agent::builder("below")
        .description("Helps.")
        .system_prompt("Help.")
        .model("small")
        .output_schema(crate::testing::result_schema())
        .build()
        .unwrap();
    let above = || builder().model("big").prices(prices.clone()).sub_agent(&below);
    assert!(above().build().is_ok());
    let error = above().budget(Budget::new().cost(Cost::usd(1.0))).build().unwrap_err();
    assert!(
        error.message().contains("agent `below` has no price for its model `small`"),
        "{error}"
    );
}
