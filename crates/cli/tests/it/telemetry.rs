//! The export of spans: live, and of recorded sessions.

use serde_json::Value;

use crate::support::server::{Reply, Server};
use crate::support::{CommandResult, TestDir};

/// Starts a receiver that gives every request this status.
async fn receiver(status: u16) -> Server {
    Server::start(move |_| Reply::of(status, "content-type: application/x-protobuf\r\n", "")).await
}

fn url(receiver: &Server) -> String {
    format!("http://127.0.0.1:{}", receiver.port)
}

fn configure(dir: &TestDir, url: &str) {
    dir.write(
        "helix.toml",
        format!("[telemetry]\nendpoint = \"{url}\"\nservice_name = \"desk\"\n"),
    );
}

async fn demo(dir: &TestDir) -> CommandResult {
    dir.helix(&["demo", "--scripted", "--pace", "0", "--json"]).await
}

/// Returns the spans of an OTLP document.
fn spans(document: &Value) -> Vec<&Value> {
    document["resourceSpans"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|resource| resource["scopeSpans"].as_array().unwrap())
        .flat_map(|scope| scope["spans"].as_array().unwrap())
        .collect()
}

#[tokio::test]
async fn a_run_exports_its_spans() {
    let (dir, receiver) = (TestDir::new(), receiver(200).await);
    configure(&dir, &url(&receiver));
    let done = demo(&dir).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    let requests = receiver.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|request| request.path() == "/v1/traces"), "{requests:?}");
}

#[tokio::test]
async fn an_unavailable_receiver_does_not_affect_a_run() {
    let (dir, receiver) = (TestDir::new(), receiver(400).await);
    configure(&dir, &url(&receiver));
    let done = demo(&dir).await;
    assert_eq!((done.code, &done.json()["status"]), (0, &"completed".into()));
    let done = dir.helix(&["demo", "--scripted", "--pace", "0"]).await;
    assert_eq!(done.code, 0);
    assert!(done.stderr.contains("could not be exported"), "{}", done.stderr);
}

#[tokio::test]
async fn a_recorded_session_is_exported() {
    let (dir, session) = TestDir::after_demo().await;
    let document = dir.helix(&["telemetry", "export", &session, "--json"]).await.json();
    let all = spans(&document);
    // Five model calls, seven tool calls and the run.
    assert_eq!(all.len(), 13, "{document}");
    let again = dir.helix(&["telemetry", "export", "--last", "--json"]).await.json();
    assert!(all == spans(&again), "the spans differ");

    let receiver = receiver(200).await;
    let done = dir.helix(&["telemetry", "export", &session, "--to", &url(&receiver)]).await;
    assert_eq!((done.code, &*done.stderr), (0, ""));
    assert!(done.stdout.contains("13 spans"), "{}", done.stdout);
    assert_eq!(receiver.requests().len(), 1);
    let done = dir.helix(&["telemetry", "export", &session, "--to", &url(&receiver), "--json"]);
    assert_eq!(done.await.json()["spans"], 13);
}

#[tokio::test]
async fn an_export_needs_a_receiver_that_accepts_it() {
    let (dir, session) = TestDir::after_demo().await;
    let done = dir.helix(&["telemetry", "export", &session]).await;
    assert_eq!(done.code, 1);
    assert!(
        done.stderr.contains("config_invalid") && done.stderr.contains("--to"),
        "{}",
        done.stderr
    );

    let receiver = receiver(401).await;
    let done =
        dir.helix(&["telemetry", "export", &session, "--to", &url(&receiver), "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (1, &"telemetry_failed".into()));
    let done =
        dir.helix(&["telemetry", "export", "missing", "--to", &url(&receiver), "--json"]).await;
    assert_eq!((done.code, &done.json_error()["code"]), (1, &"session_not_found".into()));
}

#[tokio::test]
async fn the_doctor_checks_the_receiver() {
    let dir = TestDir::new();
    let report = dir.helix(&["doctor", "--json"]).await.json();
    assert_eq!(report["telemetry"]["enabled"], false);

    let receiver = receiver(200).await;
    configure(&dir, &format!("http://user:hunter2@127.0.0.1:{}", receiver.port));
    let text = dir.helix(&["doctor"]).await.stdout;
    assert!(text.contains(&format!("OTLP, {}: responds", url(&receiver))), "{text}");
    assert!(!text.contains("hunter2"), "{text}");

    configure(&dir, "http://127.0.0.1:9");
    let report = dir.helix(&["doctor", "--json"]).await.json();
    assert_eq!(report["telemetry"]["responds"], false);
    let advice = report["advice"].as_array().unwrap();
    assert!(advice.iter().any(|finding| finding["code"] == "telemetry_failed"), "{report}");

    dir.write("helix.toml", "[telemetry]\nurl = 1\n");
    let report = dir.helix(&["doctor", "--json"]).await.json();
    let problems = report["problems"].as_array().unwrap();
    let of_file = |finding: &&Value| finding["code"] == "config_invalid";
    assert_eq!(problems.iter().filter(of_file).count(), 1, "{report}");
}
