//! Sessions: the state computed from a log (the fold), and the functions that read and write logs.

pub use crate::journal::{
    CallRef, Committed, CompletionNotice, Durability, ExportedSession, Journal, JournalConfig,
    Lineage, MAX_CACHED_EVENTS, MAX_CACHED_SESSIONS, MAX_CONFLICTS, MAX_REPORT_SOURCES,
    MessageOrigin, PendingCallView, RequestContext, SessionCache, SessionExport, SessionPage,
    SessionReader, StartOutcome, StreamRepair, StreamStatus, Submission, UsageQuery, UsageReport,
    all_pending_calls, catch_up, child_status, clear_stream, delete_session, delete_session_if,
    deliver_missed_notices, export_session, first_model, fork, has_ready_child, has_waiter,
    import_session, is_already_done, is_outcome, lineage, load, load_events, overview_and_status,
    pass_down, pending_call, pending_calls, plan_stream_repair, queue_message,
    queue_message_in_turn, recordable_result, repair_ended_stream, request, root_has_tags,
    session_and_status, session_page, submit, too_many_conflicts, usage_of_sessions, usage_of_tree,
};
pub use crate::machine::child_status::{ChildStatus, StopAction};
pub use crate::machine::result_message::result_message;
pub use crate::machine::session::{
    AnsweredCall, CallRecord, Checkpoint, ChildCall, CompanionRecord, FOLD_VERSION, FoldOutcome,
    ForkOrigin, QueuedMessage, ResolvedCall, RunRecord, RunStatus, SNAPSHOT_EVENTS,
    START_OF_SESSION, Savepoint, Session, SessionOverview, StartedCall, StepRecord, StopKind,
    StopRequest, WAIT_USAGE, Waiting, checkpoint_after, end_of_call, event_chunks, late_end,
};
pub use crate::machine::start_events::{
    StartRun, abort_events, execute_events, resume_events, rewind_events, terminate_events,
};

#[cfg(test)]
mod tests;
