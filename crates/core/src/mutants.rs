//! Guards that the simulation takes out, one at a time, to find out whether it would notice.
//!
//! A guard that can be taken out asks [`mutant!`](crate::mutant) by name. Without the feature `mutants` the
//! answer is the constant `false` and nothing of it is compiled. With the feature it is `false` as well, until
//! a program [selects](select) a mutant. Production never enables the feature.

#[cfg(feature = "mutants")]
mod selected {
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// One more than the place of the selected mutant; 0 if there is none.
    static SELECTED: AtomicUsize = AtomicUsize::new(0);

    /// A guard that can be taken out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Mutant {
        /// Its name.
        pub name: &'static str,
        /// What the mutant does.
        pub does: &'static str,
        /// The test that notices it, if no simulated story can.
        pub test: Option<&'static str>,
    }

    const fn mutant(name: &'static str, does: &'static str) -> Mutant {
        Mutant { name, does, test: None }
    }

    /// A mutant that a test notices, and no story does.
    const fn tested(name: &'static str, does: &'static str, test: &'static str) -> Mutant {
        Mutant { name, does, test: Some(test) }
    }

    /// All of them.
    pub const ALL: &[Mutant] = &[
        mutant("lease-not-checked", "calls start although the lease has run out (B1)"),
        mutant("interrupt-dropped", "a takeover drops a pending interrupt (B2)"),
        mutant("abort-dropped", "a takeover drops a pending abort (B2)"),
        mutant(
            "lease-not-kept",
            "hooks and starts of children run without the lease being kept (B3)",
        ),
        mutant("append-not-divided", "an append is never divided (B4)"),
        tested(
            "batch-renamed",
            "a batch of a stream is written again under another id (B7)",
            "late_batch::a_batch_whose_response_is_lost_is_shown_once",
        ),
        mutant("stream-left", "a deleted session leaves its stream (B8)"),
        mutant("stream-waited-for", "runs wait for streams that are away (B10)"),
        mutant("answers-forgotten", "a stream forgets which batches it has (B11)"),
        mutant("mark-first", "the stream is marked before the append"),
        mutant("fence-ignored", "a superseded run goes on"),
        mutant("lease-taken", "a run starts although another one has the lease"),
        mutant("answered-twice", "a call that was answered is answered again"),
        mutant(
            "start-not-recorded",
            "a call that must not run twice runs before its start is on record",
        ),
        mutant("doubt-ignored", "a call that may have run is run again"),
        mutant("append-not-known", "a repeated append is not recognised"),
        mutant("facts-dropped", "a conflict drops the facts that were to be appended"),
        mutant("child-renamed", "the child of a call has another id in each run"),
        mutant("budget-not-counted", "model calls are not counted against the budget"),
        mutant("message-twice", "a message is queued again that was taken"),
        mutant("interrupt-ignored", "a step begins although the run was interrupted"),
        tested(
            "attempts-left",
            "a takeover leaves in the stream what the run before showed",
            "align::a_replaced_run_discards_nothing_of_its_successor",
        ),
        mutant("boundaries-repeated", "the stream shows boundaries again"),
        mutant("deadline-ignored", "an answer is taken after the deadline"),
        mutant("head-not-kept", "the head does not follow the log"),
        mutant("child-usage-lost", "what a child used is not told to its parent"),
        mutant("hooks-told-twice", "hooks are told again of results"),
        mutant("decisions-kept", "a conflict does not take decisions back"),
        tested(
            "lease-from-answer",
            "the lease counts from the answer, not from the request",
            "ownership::tests::the_lease_counts_from_the_time_of_sending",
        ),
    ];

    /// Selects the mutant of that name, or none. Returns `false` if no mutant has the name.
    pub fn select(name: Option<&str>) -> bool {
        let place = match name {
            None => Some(0),
            Some(name) => ALL.iter().position(|it| it.name == name).map(|place| place + 1),
        };
        if let Some(place) = place {
            SELECTED.store(place, Ordering::Relaxed);
        }
        place.is_some()
    }

    /// Returns `true` if the mutant of that name is selected.
    #[must_use]
    pub fn is_selected(name: &str) -> bool {
        let selected = SELECTED.load(Ordering::Relaxed);
        selected > 0 && ALL.get(selected - 1).is_some_and(|it| it.name == name)
    }
}

#[cfg(feature = "mutants")]
pub use selected::{ALL, Mutant, is_selected, select};

/// Whether the mutant of this name is selected: `false`, unless the feature `mutants` is enabled.
#[cfg(feature = "mutants")]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutants::is_selected($name)
    };
}

/// Whether the mutant of this name is selected: `false`, unless the feature `mutants` is enabled.
#[cfg(not(feature = "mutants"))]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}
