//! A server on a TCP port, and a client that sees what is on the wire.

mod client;
mod world;

pub(crate) use client::{Client, Event, Response, text_of};
pub(crate) use world::{World, WorldBuilder, agent, pay, token_file};
