//! Panics of code that users hand in: each becomes an error of that code.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

use crate::error::{Error, ErrorCode};
use crate::text::{MAX_QUOTED, excerpt};

/// A panic of code that a user handed in. `Display` and `Debug` leave out the panic's message, which may
/// repeat content: the process's panic hook has seen that, and errors go to many places.
#[derive(Clone, PartialEq, Eq)]
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
        tracing::error!("{what} panicked");
        Self { what, message: excerpt(text.unwrap_or("no message"), MAX_QUOTED).into_owned() }
    }
}

impl Panicked {
    /// The error of a run or a caller.
    #[must_use]
    pub fn into_error(self) -> Error {
        let message = format!("{} panicked; the process's panic hook has its message", self.what);
        Error::new(ErrorCode::CodePanicked, message).with_detail(self.message)
    }

    /// What panicked and with which message, for the result of a call: the log of the session keeps that.
    #[must_use]
    pub fn in_full(&self) -> String {
        format!("{} panicked: {}", self.what, self.message)
    }
}

impl fmt::Debug for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panicked").field("what", &self.what).finish_non_exhaustive()
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} panicked", self.what)
    }
}

impl std::error::Error for Panicked {}

#[cfg(test)]
mod tests;
