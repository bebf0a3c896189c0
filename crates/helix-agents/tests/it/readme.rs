//! The example of both READMEs is the program `examples/readme.rs`, and that program works.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

/// Returns the program without its module docs and attributes.
pub(crate) fn example() -> &'static str {
    let file = include_str!("../../examples/readme.rs");
    file.split_once("\n\n").unwrap().1
}

#[test]
fn both_readmes_show_the_example() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    for readme in [own, root] {
        let text = std::fs::read_to_string(&readme).unwrap();
        assert!(text.contains(example()), "{} shows a different program", readme.display());
    }
}

#[tokio::test]
async fn the_example_runs_against_a_server_that_speaks_the_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = tokio::spawn(serve(listener));
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    for variable in helix_agents::providers::env::ALL {
        command.env_remove(variable.name);
    }
    let output = command
        .current_dir(folder.path())
        .env("OPENAI_BASE_URL", url)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        stdout, "umbrella: true, because heavy rain in Bergen until noon\n",
        "{:?}",
        output.stderr
    );
    assert!(folder.path().join("advisor.db").exists());
    server.abort();
}

/// Returns the path of the program, which cargo builds next to this test.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples/readme");
    assert!(program.exists(), "build it first: cargo build -p helix-agents --example readme");
    program
}

/// The model: it requests the weather, and then returns it.
fn reply(request: &Value) -> (&'static str, Value) {
    let messages = request["messages"].as_array().unwrap();
    match messages.iter().find(|message| message["role"] == "tool") {
        None => ("weather", json!({ "city": "Bergen" })),
        Some(result) => {
            let weather: String =
                serde_json::from_str(result["content"].as_str().unwrap()).unwrap();
            ("__finish__", json!({ "umbrella": true, "reason": weather }))
        }
    }
}

async fn serve(listener: TcpListener) {
    loop {
        let (connection, _) = listener.accept().await.unwrap();
        tokio::spawn(answer_all(connection));
    }
}

async fn answer_all(connection: TcpStream) {
    let mut connection = BufReader::new(connection);
    while let Some(request) = read(&mut connection).await {
        let (tool, arguments) = reply(&request);
        let function = json!({ "name": tool, "arguments": arguments.to_string() });
        let call = json!({ "index": 0, "id": "call", "type": "function", "function": function });
        let delta = json!({ "role": "assistant", "tool_calls": [call] });
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": "tool_calls" });
        let body = format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [choice] }));
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all((head + &body).as_bytes()).await.unwrap();
    }
}

/// Reads the body of the next request; `None` once the connection is closed.
async fn read(connection: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.ok()?;
    serde_json::from_slice(&body).ok()
}
