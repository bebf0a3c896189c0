//! The input of one case: a mutated reply, and how it is sent.

use std::fmt::Write as _;

use helix_agents_conformance::rng::Rng;

use super::body::{Body, Framing};
use super::mutate;
use super::pool::Pool;

/// The statuses that replace a recorded one.
const STATUSES: [u16; 8] = [200, 200, 200, 400, 401, 404, 429, 529];

/// The content types that replace that of the recorded reply.
const CONTENT_TYPES: [&str; 6] = [
    "application/json",
    "text/event-stream",
    "application/vnd.amazon.eventstream",
    "text/html",
    "text/plain",
    "",
];

/// The maximum number of mutations of one reply.
const MAX_MUTATIONS: usize = 24;

/// A recorded reply.
#[derive(Debug)]
pub(crate) struct Sample {
    /// The case and the number of the exchange.
    pub(crate) name: String,
    pub(crate) status: u16,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) sample: String,
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// The sizes of the pieces in which the body is sent.
    pub(crate) pieces: Vec<usize>,
    /// Whether the connection is closed before the end of the reply.
    pub(crate) is_aborted: bool,
    /// Whether the call asks for a structured output.
    pub(crate) is_structured: bool,
    mutations: Vec<&'static str>,
}

impl Input {
    /// Returns the input of a case, or `None` if there are no samples.
    pub(crate) fn of_case(samples: &[Sample], pool: &Pool, seed: u64, case: u64) -> Option<Self> {
        let rng = &mut Rng::of((seed, case));
        let sample = rng.pick(samples)?;
        let mut body = sample.body.clone();
        let mut mutations = Vec::new();
        for _ in 0..mutate::small(MAX_MUTATIONS, rng) {
            mutations.push(mutate::body(&mut body, pool, rng));
        }
        let mut encoded = body.encode();
        while rng.once_in(4) {
            mutations.push(mutate::encoded(&mut encoded, rng));
        }
        let mut input = Self {
            sample: sample.name.clone(),
            status: sample.status,
            content_type: body.framing.content_type(),
            pieces: pieces(encoded.len(), rng),
            body: encoded,
            is_aborted: rng.once_in(12),
            is_structured: rng.once_in(4),
            mutations,
        };
        if rng.once_in(30) {
            input.status = rng.pick(&STATUSES).copied().unwrap_or(200);
        }
        if rng.once_in(40) {
            input.content_type = rng.pick(&CONTENT_TYPES).copied().unwrap_or_default();
        }
        // Frames that are read as text are rarely of interest.
        if body.framing == Framing::Frames && !rng.once_in(10) {
            input.content_type = body.framing.content_type();
        }
        Some(input)
    }

    /// Returns the HTTP response, in which each piece is a chunk.
    pub(crate) fn response(&self) -> Vec<u8> {
        let Self { status, content_type, .. } = self;
        let mut out = format!(
            "HTTP/1.1 {status} Mutated\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        .into_bytes();
        let mut rest = &*self.body;
        for size in &self.pieces {
            let Some((piece, later)) = rest.split_at_checked(*size) else { break };
            out.extend_from_slice(format!("{size:x}\r\n").as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
            rest = later;
        }
        if !self.is_aborted {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        out
    }

    /// Describes the input, without its body.
    pub(crate) fn describe(&self) -> String {
        let mut out = String::new();
        let Self { sample, status, content_type, body, pieces, .. } = self;
        let _ = writeln!(out, "reply: {sample}\nstatus: {status}\ncontent type: {content_type}");
        let _ = writeln!(out, "bytes: {} in {} pieces", body.len(), pieces.len());
        let _ = writeln!(out, "closed before its end: {}", self.is_aborted);
        let _ = writeln!(out, "structured output: {}", self.is_structured);
        let _ = writeln!(out, "mutations: {}", self.mutations.join(", "));
        let _ = writeln!(out, "sizes of the pieces: {pieces:?}");
        out
    }
}

/// Divides a number of bytes into pieces.
fn pieces(length: usize, rng: &mut Rng) -> Vec<usize> {
    let most = match rng.below(5) {
        0 | 1 => length,
        2 => 1 + rng.below(8),
        3 => 1 + rng.below(200),
        _ => 1 + rng.below(20_000),
    };
    // A long reply in tiny pieces would take most of the time.
    let most = most.max(length / 5000).max(1);
    let is_even = rng.once_in(2);
    let mut rest = length;
    let mut pieces = Vec::new();
    while rest > 0 {
        let size = if is_even { most } else { 1 + rng.below(most) };
        pieces.push(size.min(rest));
        rest -= size.min(rest);
    }
    pieces
}
