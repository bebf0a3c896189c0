//! Tests of the gate.

use futures_util::FutureExt as _;

use super::{Gate, within};

#[tokio::test]
async fn a_closed_gate_blocks() {
    let gate = Gate::new();
    let mut passing = Box::pin(gate.pass());
    assert!(passing.as_mut().now_or_never().is_none());
    gate.reached().await;
    gate.open();
    within(passing).await;
}

#[tokio::test]
async fn an_open_gate_stays_open() {
    let gate = Gate::new();
    gate.open();
    within(gate.pass()).await;
    within(gate.pass()).await;
    gate.reached_by(2).await;
}

#[tokio::test]
async fn the_test_is_woken_by_the_arrival() {
    let gate = Gate::new();
    let other = gate.clone();
    let task = tokio::spawn(async move { other.pass().await });
    gate.reached().await;
    gate.open();
    within(task).await.unwrap();
}
