//! Tests of the AI SDK: each row of the mapping from chunks to UI chunks, requests, and histories.

mod continuation;
mod history;
mod request;
mod story;
