//! What the runtimes of Helix Agents have in common: everything but how runs are carried out.
//!
//! A runtime is an [`Engine`] behind a [`Runtime`]. The runtime answers for the executor's contract:
//! it begins runs in the log, asks them to stop, looks for those that were abandoned and hands out
//! handles. The engine is handed each run that has begun, as a [`Driver`], and has it carried out: in
//! a task of this process, or by workers elsewhere. Programs use a runtime; this crate is for those who
//! write one.

#[doc(hidden)]
pub use helix_agents_core as core;

mod children;
mod clock;
mod companions;
mod driver;
mod effects;
mod engine;
mod family;
mod feed;
mod forward;
mod handle;
mod in_tool;
mod lease;
mod live;
mod model;
mod nudges;
mod ownership;
mod part;
mod parts;
mod run_ref;
mod run_stream;
mod runtime;
mod settings;
mod snapshots;
mod start;
mod starts;
mod stop;
mod stream_wait;
mod sweep;
mod tasks;
#[cfg(test)]
mod testing;
mod tools;

pub use children::ChildRun;
pub use clock::{SystemIds, TokioClock};
pub use driver::Driver;
pub use engine::{Begun, Engine};
pub use feed::Ticket;
pub use lease::LeaseKeeper;
pub use live::{Listed, LiveRun};
pub use ownership::Ownership;
pub use part::{ChildRef, Next, Part};
pub use parts::Parts;
pub use run_ref::RunRef;
pub use runtime::Runtime;
pub use settings::Settings;
pub use starts::{Start, Starts};
pub use stop::Stop;
pub use tasks::Tasks;
#[doc(hidden)]
pub use tokio::runtime::Handle;
pub use tools::{CallEnd, CallRun};
