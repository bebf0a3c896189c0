//! Errors that the server, a proxy and the network cause.

use std::time::Duration;

use helix_agents_client::{Client, StartRequest, StopRequest};
use helix_agents_core::error::{ErrorCode, ErrorKind};
use helix_agents_server::{Limits, Rate};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};

use crate::support::{TOKEN, World, builder, fast, fixed};

fn start() -> StartRequest {
    StartRequest::new("clerk", "Go!").session("talk")
}

#[tokio::test]
async fn each_status_has_the_code_and_the_kind_of_the_server() {
    let gate = Gate::new();
    let world = World::new(ScriptedLlm::new([Reply::text("x").at_gate(&gate)])).await;
    let client = world.client();
    client.start(start()).await.unwrap();
    gate.reached().await;

    let stranger = Client::builder(&format!("http://{}", world.address));
    let wrong = stranger.clone().token("s3cret-wrong").build().unwrap();
    for client in [stranger.build().unwrap(), wrong] {
        let error = client.start(start()).await.unwrap_err();
        assert_eq!((error.status(), error.code()), (Some(401), "unauthenticated"), "{error}");
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unauthorized, false));
    }
    let missing = client.start(StartRequest::new("baker", "Go!")).await.unwrap_err();
    assert_eq!((missing.status(), missing.code()), (Some(404), "agent_not_found"));
    let bob =
        Client::builder(&format!("http://{}", world.address)).token("token-bob").build().unwrap();
    let foreign = bob.status(&"talk".into()).await.unwrap_err();
    assert_eq!((foreign.status(), foreign.code()), (Some(404), "session_not_found"));
    let busy = client.start(start()).await.unwrap_err();
    assert_eq!(
        (busy.status(), busy.code(), busy.kind()),
        (Some(409), "already_running", ErrorKind::Conflict)
    );
    let invalid = client.start(StartRequest::new("clerk", "")).await.unwrap_err();
    assert_eq!((invalid.status(), invalid.code()), (Some(400), "input_invalid"));
    for id in ["", ".", ".."] {
        let error = client.session(&id.into()).await.unwrap_err();
        assert!(error.is(ErrorCode::IdInvalid) && error.status().is_none(), "{id}: {error}");
    }
    let strange = client.session(&"a/b?c#d%20é".into()).await.unwrap_err();
    assert!(strange.is(ErrorCode::SessionNotFound), "{strange}");
    gate.open();
}

#[tokio::test]
async fn a_limit_is_waited_for_unless_that_takes_too_long() {
    let mut limits = Limits::default();
    limits.starts = Some(Rate::new(60, 1));
    let world = World::with(ScriptedLlm::new([Reply::text("x"), Reply::text("y")]), limits).await;
    world.client().start(StartRequest::new("clerk", "Go!")).await.unwrap();
    let mut impatient = fast();
    impatient.max_wait = Duration::from_millis(100);
    let client = builder(world.address).limits(impatient).build().unwrap();
    let error = client.start(StartRequest::new("clerk", "Go!")).await.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(429), "rate_limited"), "{error}");
    assert!(
        error.is_retryable() && error.retry_after() == Some(Duration::from_secs(1)),
        "{error:?}"
    );
    // Two seconds of patience are enough for the second that the server asks for.
    within(world.client().start(StartRequest::new("clerk", "Go!"))).await.unwrap();
}

#[tokio::test]
async fn a_server_that_shuts_down_says_when_to_come_back() {
    let world = World::new(ScriptedLlm::new([])).await;
    world.server.shutdown().await;
    let client = world.client();
    for error in [client.start(start()).await.unwrap_err(), client.health().await.unwrap_err()] {
        assert_eq!((error.status(), error.code()), (Some(503), "server_stopping"), "{error}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(5)));
    }
    assert!(!client.interrupt(StopRequest::new("talk")).await.unwrap_err().is_retryable());
}

#[tokio::test]
async fn a_response_of_something_else_is_no_success() {
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>";
    let other = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]";
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 9\r\n\r\nnot found";
    for response in [page, other, missing] {
        let (address, _heads) = fixed([response.to_owned()]).await;
        let error = builder(address).build().unwrap().status(&"talk".into()).await.unwrap_err();
        assert!(
            error.is(ErrorCode::ServerProtocol) && !error.is_retryable(),
            "{response}: {error}"
        );
    }
    let (address, _heads) = fixed([page.to_owned()]).await;
    let mut limits = fast();
    limits.response_bytes = 5;
    let client = builder(address).limits(limits).build().unwrap();
    let error = client.status(&"talk".into()).await.unwrap_err();
    assert!(error.message().contains("more than 5 bytes"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_token_stays_here() {
    let (other, mut reached) = fixed([String::new()]).await;
    let redirect = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{other}/status\r\ncontent-length: 0\r\n\r\n"
    );
    let (address, mut heads) = fixed([redirect]).await;
    let error = builder(address).build().unwrap().status(&"talk".into()).await.unwrap_err();
    assert_eq!((error.code(), error.status()), ("server_protocol", Some(307)), "{error}");
    assert!(heads.recv().await.unwrap().contains(TOKEN));
    assert!(reached.try_recv().is_err());
}

#[tokio::test]
async fn no_error_contains_the_token() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut limits = fast();
    limits.retries = 1;
    let client = builder(gone).limits(limits).build().unwrap();
    let error = client.status(&"talk".into()).await.unwrap_err();
    assert!(error.is(ErrorCode::ServerUnreachable) && error.status().is_none(), "{error}");
    let shown = format!("{error} {error:?} {client:?}");
    let converted = helix_agents_core::error::Error::from(error);
    let shown = format!("{shown} {converted:?}");
    assert!(!shown.contains(TOKEN) && !shown.contains("sessionId"), "{shown}");
}
