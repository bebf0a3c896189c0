//! The rules of streams, for stores: the state of a stream, the format of its chunks, and what readers get.

mod apply_batch;
mod attempts;
mod body;
mod replay;
mod state;

pub use body::{Encoded, decode_open, encode_open};
pub use replay::{Replay, resync};
pub use state::{Change, ChunkPlacement, Discarded, StreamState};
