//! Collects the panics of a story, including those of tokio tasks, which would go unnoticed.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The panics of the story that this thread runs. `None` if it runs no story.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs a story, and returns its outcome and its panics.
pub(crate) fn catch_panics<T>(run: impl FnOnce() -> T) -> (Option<T>, Vec<String>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            let is_ours = PANICS.with_borrow_mut(|panics| {
                panics.as_mut().map(|panics| panics.push(format!("a panic: {panic}")))
            });
            if is_ours.is_none() {
                previous(panic);
            }
        }));
    });
    PANICS.set(Some(Vec::new()));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    (outcome.ok(), PANICS.take().unwrap_or_default())
}
