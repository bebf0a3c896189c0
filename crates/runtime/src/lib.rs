//! The shared implementation of all Helix Agents runtimes: everything except the scheduling of runs.
//!
//! A runtime is an [`Engine`] behind a [`Runtime`]. The runtime implements the executor contract: it starts runs in the
//! log, requests their cancellation, finds abandoned runs and returns handles. The engine receives each started run as
//! a [`StartedRun`]. It executes the run with its [`Driver`] in a task of this process, or hands it to workers as
//! [`WorkItem`]s. Applications depend on a concrete runtime; this crate is for runtime authors.

mod builder;
mod cancel_reason;
mod children;
mod clock;
mod companions;
mod context;
mod driver;
mod effects;
mod engine;
mod family;
mod handle;
mod hook_chain;
mod in_tool;
mod lease_keeper;
mod lease_view;
mod live;
mod model;
mod recover;
mod run_ref;
mod run_stream;
mod runtime;
mod save_snapshot;
mod sessions;
mod settings;
mod start;
mod start_queue;
mod store_clock;
mod stream_wait;
mod stream_writer;
mod sweeper;
mod tasks;
#[cfg(test)]
mod testing;
mod timer;
mod tools;
mod wake_filter;
mod wakeups;
mod work_item;

pub use builder::RuntimeBuilder;
pub use cancel_reason::CancelReason;
pub use children::ChildWait;
pub use clock::{SystemIds, TokioClock};
pub use context::RuntimeContext;
pub use driver::Driver;
pub use engine::{BuiltEngine, Engine, StartedRun};
pub use lease_keeper::LeaseKeeper;
pub use lease_view::LeaseView;
pub use live::{LiveRun, RunRegistration};
pub use run_ref::RunRef;
pub use runtime::Runtime;
pub use sessions::Sessions;
pub use settings::Settings;
pub use start_queue::{StartQueue, StartTicket};
pub use stream_writer::AttemptHandle;
pub use sweeper::Sweeper;
pub use tasks::Tasks;
pub use tools::{CallEnd, CallRun};
pub use work_item::{ChildRef, NextWork, WorkItem};
