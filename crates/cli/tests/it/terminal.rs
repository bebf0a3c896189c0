//! The binary as a person uses it: typed into a shell in a real terminal.

mod aid;
mod chat;
mod commands;
mod demo;
mod people;
mod recorded;
mod resize;
mod tmux;
