//! Detects whether code runs inside a tool function.

tokio::task_local! {
    static IN_TOOL: ();
}

/// Runs a tool function and marks its task as inside a tool.
pub(crate) async fn in_tool<T>(function: impl Future<Output = T>) -> T {
    IN_TOOL.scope((), function).await
}

/// Returns `true` if the caller runs inside a tool's function, on the same task.
pub(crate) fn is_in_tool() -> bool {
    IN_TOOL.try_with(|()| ()).is_ok()
}
