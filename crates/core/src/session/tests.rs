//! The fold: what is legal, what each event makes of a session, and how it goes back.

mod family;
mod heal;
mod legality;
mod patches;
mod rewind;
mod runs;
mod savepoint;
mod state;
