//! Tests of AG-UI: each row of the mapping from chunks to events, the ends of runs that wait, requests, and histories.

mod history;
mod outcome;
mod request;
mod story;
