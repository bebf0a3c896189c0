//! Runs the server as a process, with tokens that its own command and an attacker make.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::program::{Process, example, failure, lines};

/// The secret of the server.
const OURS: &str = "5f2c61d09b7e4a35b1f0c2d3e4a59687";

/// The secret of an attacker.
const ANOTHER: &str = "0b9d11ce7a5f4d0e8d3c5a7791e2b4c6";

fn jwt(secret: &str, words: &[&str]) -> Command {
    let mut command = example(env!("CARGO_BIN_EXE_jwt"));
    command.env("JWT_SECRET", secret).args(words);
    command
}

async fn token(secret: &str, words: &[&str]) -> String {
    lines(jwt(secret, &[&["token"], words].concat())).await.remove(0)
}

/// Returns the status of a request, and its body.
async fn request(
    address: &str,
    token: &str,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn a_user_is_who_the_signed_token_names() {
    let mut command = jwt(OURS, &["serve"]);
    command.stdin(std::process::Stdio::piped());
    let mut server = Process::start(command);
    let address = server.wait_for("http://").await.remove(0);
    let address = address.strip_prefix("http://").unwrap();
    let ann = token(OURS, &["ann"]).await;
    let bob = token(OURS, &["bob"]).await;
    let operator = token(OURS, &["eve", "operator"]).await;
    let forged = token(ANOTHER, &["ann"]).await;
    let start = r#"{"sessionId": "talk", "agentType": "guide", "message": "Norway?"}"#;
    let (status, body) = request(address, &ann, "POST", "/start", start).await;
    assert_eq!(status, 202, "{body}");
    let (status, events) = request(address, &ann, "GET", "/sse?sessionId=talk", "").await;
    assert_eq!(status, 200);
    assert!(events.contains("It is Oslo."), "{events}");

    // The header of this token says that it has no signature.
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", ann.split('.').nth(1).unwrap());
    for (token, expected) in
        [(&ann, 200), (&bob, 404), (&operator, 200), (&forged, 401), (&unsigned, 401)]
    {
        let (status, body) = request(address, token, "GET", "/status?sessionId=talk", "").await;
        assert_eq!(status, expected, "{body}");
    }
    for (token, expected) in [(&ann, 403), (&operator, 200)] {
        let (status, body) = request(address, token, "GET", "/sessions/talk/log", "").await;
        assert_eq!(status, expected, "{body}");
    }
    server.kill().await;
}

#[tokio::test]
async fn it_needs_a_secret() {
    let mut command = jwt("", &["token", "ann"]);
    command.env_remove("JWT_SECRET");
    let error = failure(command).await;
    assert!(error.contains("JWT_SECRET"), "{error}");
}
