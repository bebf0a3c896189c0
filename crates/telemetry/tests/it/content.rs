//! The recording of content.

use helix_agents_telemetry::{Content, Field, MAX_ATTRIBUTE_BYTES, SpanOptions};

use crate::support::{World, named};

#[tokio::test]
async fn content_is_not_recorded_by_default() {
    let world = World::new(SpanOptions::default());
    world.play(None).await;
    let spans = format!("{:?}", world.capture.spans());
    assert!(!spans.contains("secret"), "{spans}");
}

#[tokio::test]
async fn recorded_content_is_redacted_and_excludes_human_answers() {
    let redact = |field: Field, text: &str| match field {
        Field::Result => "hidden".to_owned(),
        _ => text.replace("secret-", "public-"),
    };
    let options = SpanOptions::default().content(Content::recorded().redactor(redact));
    let world = World::new(options.clone());
    world.play(None).await;
    let text = format!("{:?}", world.capture.spans());
    assert!(!text.contains("secret"), "{text}");
    for shown in ["public-question", "public-argument", "public-answer"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for human in ["public-red", "public-colour"] {
        assert!(!text.contains(human), "{human}: {text}");
    }
    let spans = world.logged().await;
    let tool = named(&spans, "execute_tool look_up");
    assert_eq!(tool.attribute("gen_ai.tool.call.result"), Some(&"hidden".into()));

    let with_answers = Content::recorded().redactor(redact).human_content(true);
    let world = World::new(options.content(with_answers));
    world.play(None).await;
    let text = format!("{:?}", world.capture.spans());
    assert!(text.contains("public-red") && text.contains("public-colour"), "{text}");
}

#[tokio::test]
async fn long_content_is_cut() {
    let long = |_: Field, _: &str| "x".repeat(MAX_ATTRIBUTE_BYTES * 2);
    let world = World::new(SpanOptions::default().content(Content::recorded().redactor(long)));
    world.play(None).await;
    for span in world.logged().await {
        for (name, value) in &span.attributes {
            if let helix_agents_telemetry::Value::String(text) = value {
                assert!(text.len() <= MAX_ATTRIBUTE_BYTES, "{name}: {} bytes", text.len());
                let is_content = text.contains("xxx");
                assert!(!is_content || text.ends_with("[truncated]"), "{name}");
            }
        }
    }
}
