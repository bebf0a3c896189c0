//! The time limit for the body of an error.

use std::convert::Infallible;

use futures_util::{Stream, StreamExt as _, stream};
use reqwest::Body;
use tokio::time::sleep;

use super::*;

const LONG: Duration = Duration::from_secs(600);

/// Returns what is read of an error whose body consists of these pieces.
async fn error_body(pieces: impl Stream<Item = &'static str> + Send + 'static) -> Vec<u8> {
    let body = Body::wrap_stream(pieces.map(Ok::<_, Infallible>));
    let response = Response::from(http::Response::builder().status(429).body(body).unwrap());
    let subject = Subject { provider: "p", model: "m" };
    let limits = Timeouts::default().with_first_byte(LONG).with_read(LONG);
    let cancel = CancellationToken::new();
    let sent = async { Ok(response) };
    let mut exchange = Exchange::begin(sent, subject, limits, usize::MAX, &cancel).await.unwrap();
    exchange.error_body().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_error_body_that_stalls_is_used_after_the_time_limit() {
    let start = Instant::now();
    let body = error_body(stream::iter(["{\"error\":"]).chain(stream::pending())).await;
    assert_eq!(body, b"{\"error\":");
    assert_eq!(start.elapsed(), ERROR_BODY_TIME);
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_includes_pieces_that_keep_arriving() {
    let start = Instant::now();
    let pieces = stream::repeat("a").then(async |piece| {
        sleep(Duration::from_secs(2)).await;
        piece
    });
    assert_eq!(error_body(pieces.boxed()).await, b"aa");
    assert_eq!(start.elapsed(), ERROR_BODY_TIME);
}
