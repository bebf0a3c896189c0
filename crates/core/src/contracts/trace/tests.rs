//! Trace contexts as text, and computed ids.

use super::{Operation, SpanId, TraceId, TraceParent};

const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_header_is_parsed_and_written() {
    let parent: TraceParent = HEADER.parse().unwrap();
    assert!(parent.is_sampled());
    assert_eq!(parent.trace().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(parent.span().to_string(), "00f067aa0ba902b7");
    assert_eq!(serde_json::to_value(parent).unwrap(), HEADER);
    assert_eq!(serde_json::from_value::<TraceParent>(HEADER.into()).unwrap(), parent);
    // Only the lowest flag has a meaning.
    let other: TraceParent = HEADER.replace("-01", "-fe").parse().unwrap();
    assert!(!other.is_sampled());
    assert_eq!(other.to_string(), HEADER.replace("-01", "-00"));
    let later: TraceParent = HEADER.replace("00-4", "01-4").parse().unwrap();
    assert_eq!(later, parent);
    let longer: TraceParent = format!("{}-more", HEADER.replace("00-4", "cc-4")).parse().unwrap();
    assert_eq!(longer, parent);
}

#[test]
fn other_texts_are_rejected() {
    for text in [
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-+0f067aa0ba902b7-01",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ] {
        assert!(text.parse::<TraceParent>().is_err(), "{text}");
        assert!(serde_json::from_value::<TraceParent>(text.into()).is_err(), "{text}");
    }
}

/// Other processes and later versions compute the same ids.
#[test]
fn ids_are_derived_from_recorded_ids() {
    let session = "desk-1".into();
    assert_eq!(TraceId::of_turn(&session, 1).to_string(), "186aa1ed1832d443383add8f3a81b881");
    let spans = [
        SpanId::of(&session, Operation::Run(&"run_1".into())),
        SpanId::of(&session, Operation::ModelCall { step: 3 }),
        SpanId::of(&session, Operation::ToolCall(&"3.0".into())),
    ];
    assert_eq!(
        spans.map(|span| span.to_string()),
        ["b84fb3ad9a38a881", "7ea6caeb036852b9", "8865e86d11d1cf32"]
    );
}
