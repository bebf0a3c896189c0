//! Sessions: the state computed from a log (the fold), and the functions that read and write logs.

pub use crate::journal::{
    SessionCache, SessionReader, MAX_CACHED_EVENTS, MAX_CACHED_SESSIONS, clear_stream, delete_session, CompletionNotice, Lineage, child_status, has_ready_child, has_waiter, is_benign_race, lineage, overview_and_status, poll_children, session_and_status, fork, Committed, Durability, Journal, JournalConfig, StartOutcome, recordable_result, catch_up, load, load_events, SessionPage, StreamStatus, session_page, StreamRepair, is_outcome, plan_stream_repair, repair_ended_stream, RequestContext, RequestKind, pass_down, queue_message, request, CallRef, PendingView, Submission, pending_calls, submit, ExportedSession, SessionExport, export_session, import_session, usage_of_tree, MAX_REPORT_SOURCES, UsageQuery, UsageReport, usage_of_sessions,
};
pub use crate::machine::child_status::{ChildStatus, StopAction};
pub use crate::machine::session::{
    FoldOutcome, result_message, AnsweredCall, ChildCall, CompanionRecord, OpenCall, QueuedMessage, Request, ResolvedCall, StartedCall, StepRecord, Waiting, SessionOverview, WAIT_USAGE, report_waiting, boundaries, end_of_call, late_end, ForkOrigin, FOLD_VERSION, SNAPSHOT_EVENTS, Session, RunRecord, RunStatus, Checkpoint, Savepoint,
};
pub use crate::machine::start::{
    StartRun, abort_events, execute_events, resume_events, rewind_events, terminate_events,
};

#[cfg(test)]
mod tests;
