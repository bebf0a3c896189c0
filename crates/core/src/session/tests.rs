//! Tests of the fold: legality of events, their effect on a session, and rollback.

mod family;
mod heal;
mod legality;
mod patches;
mod rewind;
mod runs;
mod savepoint;
mod state;
