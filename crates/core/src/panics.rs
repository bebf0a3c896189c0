//! Panics of code that users hand in: each becomes an error of that code.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

use crate::error::{Error, ErrorCode};
use crate::text::{MAX_QUOTED, excerpt};

/// A panic of code that a user handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    what: &'static str,
    message: String,
}

/// Runs code that a user handed in. `what` names it in errors: "the system prompt".
///
/// # Errors
/// If it panics. What it shares with others by then is for its author to keep consistent, as with any
/// other failure of it.
pub fn caught<T>(what: &'static str, code: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Panicked::new(what, &*panic))
}

/// The same for a future, and for the code that makes it.
///
/// # Errors
/// As [`caught`].
pub async fn caught_async<F: Future>(
    what: &'static str,
    code: impl FnOnce() -> F,
) -> Result<F::Output, Panicked> {
    let run = AssertUnwindSafe(async { code().await }).catch_unwind();
    run.await.map_err(|panic| Panicked::new(what, &*panic))
}

impl Panicked {
    fn new(what: &'static str, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let message = excerpt(text.unwrap_or("no message"), MAX_QUOTED).into_owned();
        tracing::error!(error = message, "{what} panicked");
        Self { what, message }
    }
}

impl Panicked {
    /// The error of a run or a caller. It leaves out what the panic said, which may be anything:
    /// such errors go to many places.
    #[must_use]
    pub fn into_error(self) -> Error {
        let message = format!("{} panicked; the log of the process says how", self.what);
        Error::new(ErrorCode::CodePanicked, message)
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} panicked: {}", self.what, self.message)
    }
}

impl std::error::Error for Panicked {}

#[cfg(test)]
mod tests;
