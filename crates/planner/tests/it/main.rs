//! Loops of plans on the local runtime, in memory and on SQLite.

mod answers;
mod executor;
mod instant;
mod once;
mod options;
mod planner;
mod restarts;
mod rounds;
mod stops;
mod stream;
mod support;
mod unusable;
