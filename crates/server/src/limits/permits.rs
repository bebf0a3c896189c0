//! Counted permits, for each principal and in all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A pool of permits with a limit for each principal and one for all of them.
#[derive(Debug)]
pub(crate) struct Permits {
    of_one: usize,
    of_all: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    in_all: usize,
    by_principal: HashMap<Arc<str>, usize>,
}

/// A permit, which returns to its pool when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    pool: Arc<Permits>,
    principal: Arc<str>,
}

impl Permits {
    /// Creates a pool.
    pub(crate) fn new(of_one: usize, of_all: usize) -> Arc<Self> {
        Arc::new(Self { of_one, of_all, used: Mutex::default() })
    }

    /// Returns a permit, or `None` if a limit is reached.
    pub(crate) fn acquire(self: &Arc<Self>, principal: &str) -> Option<Permit> {
        let mut used = self.lock();
        let own = used.by_principal.get(principal).copied().unwrap_or_default();
        if used.in_all >= self.of_all || own >= self.of_one {
            return None;
        }
        let principal: Arc<str> = principal.into();
        used.in_all += 1;
        used.by_principal.insert(Arc::clone(&principal), own + 1);
        Some(Permit { pool: Arc::clone(self), principal })
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut used = self.pool.lock();
        used.in_all -= 1;
        // A principal without permits has no entry, so that the table does not grow with every principal ever seen.
        match used.by_principal.get_mut(&self.principal) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(used.by_principal.remove(&self.principal)),
        }
    }
}

#[cfg(test)]
mod tests;
