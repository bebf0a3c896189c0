//! Tools behave like their functions.

use std::num::ParseIntError;

use helix_agents::tool;
use helix_agents_core::tool::{NoInput, ToolContext, ToolError, ToolFunction};
use schemars::JsonSchema;
use serde::Deserialize;

use super::context;

#[derive(Debug, Deserialize, JsonSchema)]
struct Pair {
    left: u32,
    right: u32,
}

/// Adds two numbers.
#[tool(crate = helix_agents_core)]
async fn add(input: Pair, cx: &ToolContext) -> Result<u32, ToolError> {
    cx.record_usage("additions", 1.0);
    Ok(input.left + input.right)
}

/// Subtracts two numbers.
#[tool(crate = helix_agents_core)]
async fn subtract(Pair { left, right }: Pair) -> Result<u32, ToolError> {
    left.checked_sub(right)
        .ok_or_else(|| ToolError::new("`right` is larger than `left`").retryable())
}

/// Returns the step.
#[tool(crate = helix_agents_core)]
async fn step(cx: &ToolContext) -> Result<u32, ToolError> {
    Ok(cx.step())
}

/// Waits for the next turn.
#[tool(crate = helix_agents_core)]
async fn pause() -> Result<(), ToolError> {
    tokio::task::yield_now().await;
    Ok(())
}

/// Reads a number.
#[tool(crate = helix_agents_core)]
async fn read(input: String) -> Result<i32, ParseIntError> {
    input.parse()
}

type Answer<T> = Result<T, ToolError>;

/// Has parameters and variables with its own name.
#[tool(crate = helix_agents_core)]
async fn echo(mut echo: String) -> Answer<String> {
    echo.push('!');
    let echo = echo;
    Ok(echo)
}

#[tokio::test]
async fn input_and_context_arrive() {
    let cx = context();
    let sum = add.call(Pair { left: 2, right: 3 }, &cx).await.unwrap();
    assert_eq!(sum, 5);
    assert_eq!(cx.effects().usage, [("additions".to_owned(), 1.0)]);
}

#[tokio::test]
async fn an_input_can_be_destructured_in_place() {
    let cx = context();
    let pair = Pair { left: 5, right: 3 };
    assert_eq!(subtract.call(pair, &cx).await.unwrap(), 2);
}

#[tokio::test]
async fn a_tool_error_stays_retryable() {
    let pair = Pair { left: 3, right: 5 };
    let error = subtract.call(pair, &context()).await.unwrap_err();
    assert_eq!(error.message(), "`right` is larger than `left`");
    assert!(error.is_retryable());
}

#[tokio::test]
async fn any_error_becomes_a_tool_error() {
    let error = read.call("seven".to_owned(), &context()).await.unwrap_err();
    assert_eq!(error.message(), "invalid digit found in string");
}

#[tokio::test]
async fn the_context_can_be_the_only_parameter() {
    assert_eq!(step.call(NoInput {}, &context()).await.unwrap(), 3);
}

#[tokio::test]
async fn a_tool_can_have_no_parameters() {
    pause.call(NoInput {}, &context()).await.unwrap();
}

#[tokio::test]
async fn a_result_behind_an_alias_is_a_result() {
    let answer = echo.call("hello".to_owned(), &context()).await.unwrap();
    assert_eq!(answer, "hello!");
}
