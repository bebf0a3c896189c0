//! Pending calls as text.

use helix_agents::event::PendingKind;
use helix_agents::session::PendingCallView;

/// The arguments that the call would run with, in one line. If the model wrote a member twice, the last
/// one counts, and only that one is shown.
pub(crate) fn arguments(view: &PendingCallView) -> String {
    view.arguments.to_value().to_string()
}

/// A short description of what a call waits for.
pub(crate) fn kind(view: &PendingCallView) -> &'static str {
    match view.pending.kind {
        PendingKind::Client => "a result",
        PendingKind::Approval { editable: true } => "approval (editable)",
        PendingKind::Approval { .. } => "approval",
        _ => "an answer",
    }
}
