//! The spans of a turn with a tool, a sub-agent, a client tool and two runs.

use helix_agents_core::trace::{Operation, SpanId, TraceId};
use helix_agents_telemetry::{Layout, Span, SpanKind, SpanOptions, Value};

use crate::support::{DESK, World, named};

fn of(operation: Operation<'_>) -> SpanId {
    SpanId::of(&DESK.into(), operation)
}

fn runs(spans: &[Span]) -> Vec<&Span> {
    let mut runs: Vec<_> = spans.iter().filter(|span| span.name == "invoke_agent clerk").collect();
    runs.sort_by_key(|run| !run.links.is_empty());
    runs
}

#[tokio::test]
async fn live_spans_are_those_of_the_log() {
    for layout in [Layout::Turn, Layout::Session] {
        let world = World::new(SpanOptions::default().layout(layout));
        world.play(None).await;
        let (live, logged) = (world.capture.spans(), world.logged().await);
        assert_eq!(live.len(), logged.len());
        for (live, logged) in live.iter().zip(&logged) {
            assert_eq!(live.span_context.span_id().to_bytes(), logged.id.to_bytes());
            assert_eq!(live.span_context.trace_id().to_bytes(), logged.trace.to_bytes());
            let parent = logged.parent.map_or([0; 8], SpanId::to_bytes);
            assert_eq!(live.parent_span_id.to_bytes(), parent);
            assert_eq!(live.name, logged.name);
            assert_eq!(live.attributes.len(), logged.attributes.len(), "{live:?}");
            let millis = |time: std::time::SystemTime| {
                time.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()
            };
            assert_eq!(millis(live.start_time), u128::try_from(logged.start.0).unwrap());
            assert_eq!(millis(live.end_time), u128::try_from(logged.end.0).unwrap());
        }
    }
}

#[tokio::test]
async fn a_turn_is_a_tree_of_spans() {
    let world = World::new(SpanOptions::default());
    world.play(None).await;
    let spans = world.logged().await;
    assert_eq!(spans.len(), 10, "{:?}", spans.iter().map(|span| &span.name).collect::<Vec<_>>());
    assert!(spans.iter().all(|span| span.trace == TraceId::of_turn(&DESK.into(), 1)));
    assert!(spans.iter().all(|span| span.error.is_none()));
    let [first, second] = runs(&spans)[..] else { panic!("two runs") };
    assert_eq!((first.parent, second.parent), (None, None));
    assert_eq!(second.links[0].span, first.id);
    assert_eq!(second.links[0].relation, "resumed_from");
    assert_eq!(first.events[0].name, "helix.suspended");
    assert_eq!(second.events[0].name, "helix.resumed");
    let status = |run: &Span| run.attribute("helix.status").cloned();
    assert_eq!(status(first), Some("suspended_client_tool".into()));
    assert_eq!(status(second), Some("completed".into()));

    let tool = named(&spans, "execute_tool look_up");
    assert_eq!(tool.id, of(Operation::ToolCall(&"1.0".into())));
    assert_eq!(tool.parent, Some(first.id));
    let delegation = named(&spans, "execute_tool subagent__poet");
    let poet = named(&spans, "invoke_agent poet");
    assert_eq!(poet.parent, Some(delegation.id));
    // The start of a sub-agent is recorded after it has started.
    assert!(poet.start <= delegation.end && poet.end <= delegation.end, "{delegation:?} {poet:?}");

    let wait = named(&spans, "wait ask");
    assert_eq!(wait.parent, None);
    assert_eq!(wait.attribute("helix.wait.outcome"), Some(&"returned".into()));
    assert_eq!(wait.links[0].relation, "answered_by");
    assert_eq!(wait.links[0].span.to_string(), "bbbbbbbbbbbbbbbb");

    let model = spans.iter().find(|span| span.id == of(Operation::ModelCall { step: 3 })).unwrap();
    assert_eq!((model.name.as_str(), model.kind), ("chat scripted", SpanKind::Client));
    assert_eq!(model.parent, Some(second.id));
    assert_eq!(model.attribute("gen_ai.usage.input_tokens"), Some(&Value::Int(30)));
    assert_eq!(model.attribute("gen_ai.conversation.id"), Some(&DESK.into()));
    let sum: i64 = spans
        .iter()
        .filter_map(|span| match span.attribute("gen_ai.usage.input_tokens") {
            Some(Value::Int(tokens)) => Some(*tokens),
            _ => None,
        })
        .sum();
    assert_eq!(sum, 65, "no token is counted twice");
}

#[tokio::test]
async fn a_turn_belongs_to_the_trace_of_its_caller() {
    let world = World::new(SpanOptions::default());
    let caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let caller = caller.parse::<helix_agents_core::trace::TraceParent>().unwrap();
    world.play(Some(caller)).await;
    let spans = world.logged().await;
    assert!(spans.iter().all(|span| span.trace == caller.trace()));
    assert!(runs(&spans).iter().all(|run| run.parent == Some(caller.span())));
}

#[tokio::test]
async fn a_session_can_be_one_trace() {
    let world = World::new(SpanOptions::default().layout(Layout::Session));
    world.play(None).await;
    let spans = world.logged().await;
    assert!(spans.iter().all(|span| span.trace == TraceId::of_session(&DESK.into())));
    assert_eq!(spans[0].trace.to_string(), "dd9b8562f3ff0dd3eec8147cf6147b65");
    let poet = named(&spans, "invoke_agent poet");
    assert_eq!(poet.parent, Some(of(Operation::ToolCall(&"1.1".into()))));
}
