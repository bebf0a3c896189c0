//! The choice of traces.

use helix_agents_telemetry::SpanOptions;

use crate::support::World;

fn caller(sampled: bool) -> Option<helix_agents_core::trace::TraceParent> {
    let flags = if sampled { "01" } else { "00" };
    format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}").parse().ok()
}

/// A ratio applies to sub-agents as well. Their context says `sampled`, because it is derived.
#[tokio::test]
async fn a_ratio_applies_to_whole_turns() {
    let world = World::new(SpanOptions::default().sample_ratio(0.0));
    world.play(None).await;
    assert!(world.capture.spans().is_empty(), "{:?}", world.capture.spans());
    assert!(world.logged().await.is_empty());
}

#[tokio::test]
async fn the_flag_of_a_caller_takes_precedence() {
    let world = World::new(SpanOptions::default().sample_ratio(0.0));
    world.play(caller(true)).await;
    assert_eq!(world.capture.spans().len(), 10);
    let world = World::new(SpanOptions::default());
    world.play(caller(false)).await;
    assert!(world.capture.spans().is_empty());
}
