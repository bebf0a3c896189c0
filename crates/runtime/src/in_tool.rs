//! Knowing whether code runs inside of a tool.

tokio::task_local! {
    static IN_TOOL: ();
}

/// Runs the function of a tool.
pub(crate) async fn in_tool<T>(function: impl Future<Output = T>) -> T {
    IN_TOOL.scope((), function).await
}

/// Returns `true` if the caller runs inside a tool's function, on the same task.
pub(crate) fn is_in_tool() -> bool {
    IN_TOOL.try_with(|()| ()).is_ok()
}
