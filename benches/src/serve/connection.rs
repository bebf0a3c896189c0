//! One connection: sequential requests and their replies.

use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::answer::{self, Encoding};
use super::script::{self, Route, Say};
use super::stats::Stats;
use crate::job::{Format, Work};

/// The maximum size of a request, several times that of the longest run.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The initial buffer size, so that a typical request is read at once. Unused memory costs nothing.
const INITIAL_BYTES: usize = 256 * 1024;

/// The positions of a request's parts in the buffer.
struct Request {
    path: std::ops::Range<usize>,
    body: std::ops::Range<usize>,
}

/// Serves requests until the client closes the connection.
pub(super) async fn serve(mut stream: TcpStream, stats: &Stats) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut input = Vec::with_capacity(INITIAL_BYTES);
    let mut output = Vec::with_capacity(4096);
    while let Some(request) = read(&mut stream, &mut input).await? {
        let read = Instant::now();
        output.clear();
        let path = input.get(request.path).unwrap_or_default();
        let body = input.get(request.body).unwrap_or_default();
        match script::route(std::str::from_utf8(path)?) {
            Some(Route::Seen) => {
                let seen = serde_json::to_vec(&stats.seen())?;
                answer::whole(200, "application/json", &seen, &mut output)?;
            }
            Some(Route::Forget) => {
                stats.forget();
                answer::whole(200, "text/plain", b"forgotten", &mut output)?;
            }
            Some(Route::Work(format, work)) => match check(format, work, body) {
                Ok((say, results)) => {
                    stats.requested(results, body.len(), read);
                    wait(work).await;
                    if streams(format, body) {
                        let encoding = answer::encoding(format);
                        reply(&mut stream, say, encoding, &mut output).await?;
                    } else {
                        answer::document(say, &mut output)?;
                    }
                    // The client may receive the reply before the write call returns, so record it
                    // first.
                    stats.answers(results);
                }
                Err(error) => {
                    stats.refused();
                    let problem = format!("{error:#}");
                    answer::whole(400, "text/plain", problem.as_bytes(), &mut output)?;
                }
            },
            None => answer::whole(404, "text/plain", b"unknown path", &mut output)?,
        }
        stream.write_all(&output).await?;
        input.clear();
    }
    Ok(())
}

fn check(format: Format, work: Work, body: &[u8]) -> Result<(Say, u32)> {
    let results = script::results(body, answer::encoding(format).marks())?;
    Ok((script::next(work, results)?, results))
}

/// Waits as long as the model takes for a reply.
async fn wait(work: Work) {
    let delay = script::delay(work);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// Returns `true` if the client wants a stream. Only requests of Chat Completions are also made without one here.
fn streams(format: Format, body: &[u8]) -> bool {
    let settings = body.get(..body.len().min(256)).unwrap_or_default();
    format != Format::OpenaiChat || memmem::find(settings, b"\"stream\":true").is_some()
}

/// Writes a streamed reply to `output`. Most of a long reply is already sent.
async fn reply(
    stream: &mut TcpStream,
    say: Say,
    encoding: &dyn Encoding,
    output: &mut Vec<u8>,
) -> Result<()> {
    let Say::Text { chunks, per_write } = say else { return answer::events(say, encoding, output) };
    answer::start_of_words(encoding, output)?;
    let mut piece = Vec::new();
    answer::words(per_write, encoding, &mut piece)?;
    for _ in 0..chunks / per_write {
        output.extend_from_slice(&piece);
        stream.write_all(output).await?;
        output.clear();
    }
    if chunks % per_write > 0 {
        answer::words(chunks % per_write, encoding, output)?;
    }
    answer::end_of_words(chunks, encoding, output)
}

/// Reads the next request. Returns `None` if the client has closed the connection.
async fn read(stream: &mut TcpStream, input: &mut Vec<u8>) -> Result<Option<Request>> {
    loop {
        if let Some(head) = memmem::find(input, b"\r\n\r\n") {
            let body = head + 4;
            let end = body + content_length(input.get(..head).unwrap_or_default())?;
            ensure!(end <= MAX_BYTES, "the request is too large");
            while input.len() < end {
                if stream.read_buf(input).await? == 0 {
                    return Ok(None);
                }
            }
            ensure!(input.len() == end, "a request was sent before the previous reply");
            return Ok(Some(Request { path: path(input)?, body: body..end }));
        }
        ensure!(input.len() < MAX_BYTES, "the head of the request is too large");
        if stream.read_buf(input).await? == 0 {
            return Ok(None);
        }
    }
}

/// Returns the path in `POST /path HTTP/1.1`.
fn path(input: &[u8]) -> Result<std::ops::Range<usize>> {
    let mut spaces = memchr::memchr_iter(b' ', input);
    match (spaces.next(), spaces.next()) {
        (Some(method), Some(path)) => Ok(method + 1..path),
        _ => bail!("the request is not HTTP"),
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"content-length") {
            let value = std::str::from_utf8(value)?.trim_matches([':', ' ', '\r']);
            return value.parse().context("the content length is not a number");
        }
    }
    Ok(0)
}
