//! Client of the HTTP API of an agent server.
//!
//! [`Client`] starts, follows, answers and stops runs of a `helix-agents-server`. Its types for chunks, events, answers
//! and sessions are those of `helix-agents-core`. Event streams reconnect by themselves, and requests that can be
//! repeated are repeated, so a lost connection neither starts a run twice nor loses a chunk.

mod api;
mod builder;
mod client;
mod error;
mod follow;
mod limits;
mod remote_agent;
mod remote_run;
mod token;
mod transport;
mod wire;

pub use api::{
    Answered, Listing, LogPage, ResumeRequest, Resumption, RunSummary, SessionDetails,
    SessionQuery, SessionSummary, StartRequest, Started, Status, StopRequest,
};
pub use builder::ClientBuilder;
pub use client::Client;
pub use error::{ClientError, Result};
pub use follow::{ChunkFollower, FollowOptions, StreamEnd};
pub use limits::{Limits, Timeouts};
pub use remote_agent::RemoteAgent;
pub use token::Token;
