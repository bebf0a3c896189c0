//! Tests of the binary in a real terminal, with typed input.

mod approvals;
mod auxiliary;
mod chat;
mod commands;
mod demo;
mod recorded;
mod resize;
mod tmux;
