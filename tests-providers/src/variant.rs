//! The ways in which one reply is sent: divided into pieces, and with the members of objects in another order.

use std::fmt;

use helix_agents_conformance::rng::Rng;
use serde_json::Value;

use crate::case::{Exchange, Reply};

/// A way to send a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variant {
    pieces: Pieces,
    is_reversed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pieces {
    Whole,
    /// Pieces of this many bytes.
    Of(usize),
    /// Pieces of pseudorandom sizes.
    Random,
}

impl Variant {
    /// Returns the variants in which a reply is played.
    pub(crate) fn all(exchange: &Exchange) -> Vec<Self> {
        let sizes: &[Pieces] = match exchange.reply {
            Reply::Text(_) | Reply::Binary(_) => {
                &[Pieces::Whole, Pieces::Of(1), Pieces::Of(7), Pieces::Random]
            }
            _ => &[Pieces::Whole],
        };
        // The members of a binary stream keep their order.
        let orders: &[bool] = match exchange.reply {
            Reply::Binary(_) => &[false],
            _ => &[false, true],
        };
        let orders = orders.iter().copied();
        orders
            .flat_map(|is_reversed| sizes.iter().map(move |&pieces| Self { pieces, is_reversed }))
            .collect()
    }

    /// Returns the body of a reply in this order.
    pub(crate) fn body(self, reply: &Reply) -> Vec<u8> {
        let mut out = String::new();
        match reply {
            Reply::Document(value) => self.write(value, &mut out),
            Reply::Text(text) => {
                for line in text.split_inclusive('\n') {
                    let data = line.trim_end().strip_prefix("data:").map(str::trim_start);
                    match data.and_then(|data| serde_json::from_str::<Value>(data).ok()) {
                        Some(value) if self.is_reversed => {
                            out.push_str("data: ");
                            self.write(&value, &mut out);
                            out.push_str(line.get(line.trim_end().len()..).unwrap_or_default());
                        }
                        _ => out.push_str(line),
                    }
                }
            }
            Reply::Binary(bytes) => return bytes.clone(),
        }
        out.into_bytes()
    }

    /// Divides a body into the pieces in which it is sent.
    pub(crate) fn pieces(self, body: &[u8]) -> Vec<&[u8]> {
        let mut rest = body;
        let mut rng = Rng::of(());
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let size = match self.pieces {
                Pieces::Whole => rest.len(),
                Pieces::Of(size) => size,
                Pieces::Random => 1 + rng.below(255),
            };
            let (piece, later) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = later;
        }
        pieces
    }

    fn write(self, value: &Value, out: &mut String) {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if self.is_reversed {
                    members.reverse();
                }
                out.push('{');
                for (index, (key, value)) in members.into_iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&Value::from(key.as_str()).to_string());
                    out.push(':');
                    self.write(value, out);
                }
                out.push('}');
            }
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    self.write(item, out);
                }
                out.push(']');
            }
            other => out.push_str(&other.to_string()),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pieces {
            Pieces::Whole => f.write_str("whole")?,
            Pieces::Of(size) => write!(f, "in pieces of {size}")?,
            Pieces::Random => f.write_str("in random pieces")?,
        }
        if self.is_reversed { f.write_str(", members reversed") } else { Ok(()) }
    }
}
