//! What a tool is handed, and what its return means.

mod context;
mod returns;
