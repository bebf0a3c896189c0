//! Whether and where a work item was executed before.

/// The last execution of a work item before the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PriorExecution {
    /// The item was not executed before.
    Never,
    /// The same call of `perform` executed it and was superseded by another process.
    Here,
    /// Another call of `perform` executed it and returned no result.
    Elsewhere,
}
