//! The decoder of server-sent events, for the crates that read event streams.

mod decoder;

pub use decoder::{Decoder, Event};
