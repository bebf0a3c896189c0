//! Runs the server of the example, and sends requests as a page does.

use std::fs;

use helix_agents::server::token_digest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::program::{Process, example, failure};

/// Starts the server with these options. Returns the process, and its address.
async fn start(folder: &std::path::Path, options: &[&str]) -> (Process, String) {
    let mut command = example(env!("CARGO_BIN_EXE_clerk"));
    command.current_dir(folder).args(["--listen", "127.0.0.1:0"]).args(options);
    let mut process = Process::start(command);
    let lines = process.wait_for("listening on http://").await;
    let address = lines.last().unwrap().strip_prefix("listening on http://").unwrap().to_owned();
    (process, address)
}

/// Sends a request and returns the whole response.
async fn send(address: &str, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test]
async fn it_serves_the_page_and_a_chat() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page");
    fs::create_dir(&page).unwrap();
    fs::write(page.join("index.html"), "<h1>Clerk</h1>").unwrap();
    fs::write(page.join("page.js"), "run()").unwrap();
    fs::write(page.join("notes.txt"), "private").unwrap();
    let options = ["--open", "--page", "page"];
    let (mut process, address) = start(folder.path(), &options).await;

    let index = send(&address, "GET /", "").await;
    assert!(index.contains("text/html") && index.ends_with("<h1>Clerk</h1>"), "{index}");
    let script = send(&address, "GET /page.js", "").await;
    assert!(script.contains("text/javascript") && script.ends_with("run()"), "{script}");
    for path in ["/notes.txt", "/../clerk.db", "/%2e%2e/clerk.db"] {
        let missing = send(&address, &format!("GET {path}"), "").await;
        assert!(missing.starts_with("HTTP/1.1 404"), "{missing}");
    }

    let said = r#"{"id":"talk","trigger":"submit-message","messages":[{"id":"m1","role":"user",
        "parts":[{"type":"text","text":"How is the weather?"}]}]}"#;
    let turn = send(&address, "POST /api/chat", said).await;
    assert!(turn.starts_with("HTTP/1.1 200"), "{turn}");
    assert!(turn.contains(r#""output":{"city":"Oslo","weather":"rain"}"#), "{turn}");
    assert!(turn.contains("[DONE]"), "{turn}");
    let history = send(&address, "GET /api/chat/talk/messages", "").await;
    assert!(history.contains("Shall I pay Ann's bill"), "{history}");
    process.kill().await;
}

#[tokio::test]
async fn with_tokens_it_refuses_requests_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let digest = token_digest("8f2c61d09b7e4a35b1f0c2d3e4a59687");
    let tokens = format!("[[token]]\nname = \"ann\"\nrole = \"user\"\nsha256 = \"{digest}\"\n");
    fs::write(folder.path().join("tokens.toml"), tokens).unwrap();
    let options = ["--tokens", "tokens.toml", "--store", "memory:"];
    let (mut process, address) = start(folder.path(), &options).await;
    let refused = send(&address, "GET /api/agents", "").await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    process.kill().await;
}

#[tokio::test]
async fn without_authentication_it_listens_only_on_this_machine() {
    let mut command = example(env!("CARGO_BIN_EXE_clerk"));
    command.args(["--open", "--listen", "0.0.0.0:0"]);
    let error = failure(command).await;
    assert!(error.contains("--open is for a loopback address; use --tokens"), "{error}");
    let mut command = example(env!("CARGO_BIN_EXE_clerk"));
    command.args(["--listen", "127.0.0.1:0"]);
    let error = failure(command).await;
    assert!(error.contains("--tokens"), "{error}");
}
