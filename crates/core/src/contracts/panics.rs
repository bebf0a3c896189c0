//! Catches panics of user code and converts them into errors.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

use crate::error::{Error, ErrorCode};
use crate::text::{MAX_QUOTED, excerpt};

/// A panic of user code. `Display` and `Debug` omit the panic's message, because it may repeat
/// content: the process's panic hook has already received it, and errors are stored in many places.
#[derive(Clone, PartialEq, Eq)]
pub struct Panicked {
    what: &'static str,
    message: String,
}

/// Runs user code. `what` names the code in errors, for instance "the system prompt".
///
/// # Errors
/// Returns an error if the code panics. The code's author is responsible for the consistency of its
/// shared data, as with any other failure.
pub fn caught<T>(what: &'static str, code: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| Panicked::new(what, &*panic))
}

/// Runs a user future, including the code that creates it.
///
/// # Errors
/// Returns the errors of [`caught`].
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
    /// Returns the error for a run or a caller.
    #[must_use]
    pub fn into_error(self) -> Error {
        let message = format!("{} panicked; the process's panic hook has its message", self.what);
        Error::new(ErrorCode::CodePanicked, message).with_detail(self.message)
    }

    /// Returns the name of the code and the panic's message, for the result of a call. It is only
    /// kept in the session's log.
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
