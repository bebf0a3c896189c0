//! Panics of a story, wherever they happen: those of a task of tokio would go unnoticed.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The panics of the story that this thread tells; none if it tells none.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Tells a story, and returns the panics beside what it came to.
pub(crate) fn noticed<T>(tell: impl FnOnce() -> T) -> (Option<T>, Vec<String>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            let is_ours = PANICS.with_borrow_mut(|panics| {
                panics.as_mut().map(|panics| panics.push(format!("a panic: {panic}")))
            });
            if is_ours.is_none() {
                before(panic);
            }
        }));
    });
    PANICS.set(Some(Vec::new()));
    let told = catch_unwind(AssertUnwindSafe(tell));
    (told.ok(), PANICS.take().unwrap_or_default())
}
