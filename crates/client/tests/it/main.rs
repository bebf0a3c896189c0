//! Tests of the client against a real server over TCP: lost responses, broken streams, errors and every route.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod answers;
mod errors;
mod handles;
mod remote_agents;
mod retries;
mod routes;
mod streams;
mod support;
