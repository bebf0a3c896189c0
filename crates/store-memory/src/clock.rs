//! The store's clock.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use helix_agents_core::clock::{Clock, Timestamp};

/// The clock that decides lease expiry and timestamps appends: the system clock, unless a test
/// supplies another one.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoreClock(Option<Arc<dyn Clock>>);

impl StoreClock {
    pub(crate) fn of(clock: Arc<dyn Clock>) -> Self {
        Self(Some(clock))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.as_ref().map_or_else(system_time, |clock| clock.now())
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the store's own clock")]
fn system_time() -> Timestamp {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
}
