//! The attributes for Langfuse.

use std::collections::BTreeMap;

use helix_agents_telemetry::{Span, Telemetry, Value};
use serde_json::json;

use crate::support::World;

const KEYS: [(&str, &str); 2] = [("LANGFUSE_PUBLIC_KEY", "pk"), ("LANGFUSE_SECRET_KEY", "sk")];

fn variables(others: &[(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let all: BTreeMap<_, _> = KEYS.iter().chain(others).copied().collect();
    move |name| all.get(name).map(|value| (*value).to_owned())
}

fn text<'a>(span: &'a Span, name: &str) -> Option<&'a str> {
    match span.attribute(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn a_session_has_the_attributes_that_langfuse_reads() {
    let environment = [("LANGFUSE_TRACING_ENVIRONMENT", "staging")];
    let telemetry = Telemetry::langfuse_from(variables(&environment)).unwrap().build().unwrap();
    let world = World::new(telemetry.span_options().clone());
    world.play(None).await;
    let spans = world.logged().await;
    assert_eq!(spans.len(), 10);
    for span in &spans {
        assert_eq!(span.trace.to_string(), "dd9b8562f3ff0dd3eec8147cf6147b65");
        assert_eq!(text(span, "langfuse.session.id"), Some("desk-1"));
        assert_eq!(text(span, "langfuse.environment"), Some("staging"));
        let kind = match span.name.split(' ').next() {
            Some("invoke_agent") => "agent",
            Some("chat") => "generation",
            Some("execute_tool") => "tool",
            _ => "span",
        };
        assert_eq!(text(span, "langfuse.observation.type"), Some(kind));
        if kind == "generation" {
            let details = text(span, "langfuse.observation.usage_details").unwrap();
            let details: BTreeMap<String, i64> = serde_json::from_str(details).unwrap();
            let tokens = |name: &str| match span.attribute(name) {
                Some(Value::Int(tokens)) => *tokens,
                _ => 0,
            };
            let sum = tokens("gen_ai.usage.input_tokens") + tokens("gen_ai.usage.output_tokens");
            assert_eq!(details.values().sum::<i64>(), sum, "{}", json!(details));
        }
    }
    let root = spans.iter().find(|span| span.name == "invoke_agent clerk").unwrap();
    assert_eq!(text(root, "langfuse.user.id"), Some("ann"));
    assert_eq!(text(root, "langfuse.trace.name"), Some("clerk"));
}

#[test]
fn missing_keys_are_named() {
    let error = Telemetry::langfuse_from(|_| None).unwrap_err();
    assert!(error.to_string().contains("LANGFUSE_PUBLIC_KEY"), "{error}");
}
