//! The agent of `helix demo`: it looks things up in a table of the Solar System and hands in a
//! report.

mod agent;
mod bodies;
mod desk;
pub(crate) mod script;
mod setting;
mod tools;

pub(crate) use agent::{NAME, QUESTION, Report, researcher};
pub(crate) use setting::Setting;
