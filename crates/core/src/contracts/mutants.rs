//! Mutants: guards that the simulation disables one at a time, to check that it detects their
//! absence.
//!
//! A guard that can be disabled checks [`mutant!`](crate::mutant) by name. Without the feature
//! `mutants` the macro is the constant `false`, and nothing else is compiled. With the feature it
//! is `false` until a program [selects](select) the mutant, or the environment variable
//! [`HELIX_MUTANT`](ENVIRONMENT) names it. Production builds never enable the feature.

#[cfg(feature = "mutants")]
mod selected {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The environment variable with the name of the mutant that is selected at first.
    pub const ENVIRONMENT: &str = "HELIX_MUTANT";

    /// The index of the selected mutant plus one; 0 if none is selected.
    static SELECTED: LazyLock<AtomicUsize> = LazyLock::new(|| {
        let name = std::env::var(ENVIRONMENT).ok();
        let number = number_of(name.as_deref());
        assert!(number.is_some(), "{ENVIRONMENT} names no mutant: {name:?}");
        AtomicUsize::new(number.unwrap_or(0))
    });

    /// A guard that can be disabled.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Mutant {
        /// The name of the mutant.
        pub name: &'static str,
        /// The effect of the mutant.
        pub does: &'static str,
        /// The test that detects the mutant, if no simulated story can.
        pub test: Option<MutantTest>,
    }

    /// A test that fails with a mutant.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct MutantTest {
        /// The package of the test.
        pub package: &'static str,
        /// The path of the test in its package.
        pub name: &'static str,
    }

    const fn mutant(name: &'static str, does: &'static str) -> Mutant {
        Mutant { name, does, test: None }
    }

    /// Creates a mutant that is detected by a test, not by a story.
    const fn tested(name: &'static str, does: &'static str, test: MutantTest) -> Mutant {
        Mutant { name, does, test: Some(test) }
    }

    const fn test_of(package: &'static str, name: &'static str) -> MutantTest {
        MutantTest { package, name }
    }

    /// All mutants.
    pub const ALL: &[Mutant] = &[
        mutant("lease-not-checked", "calls start although the lease has expired *"),
        mutant("interrupt-dropped", "a takeover drops a pending interrupt *"),
        mutant("abort-dropped", "a takeover drops a pending abort *"),
        mutant("lease-not-kept", "hooks and starts of children run without the lease being kept *"),
        mutant("append-not-divided", "an append is never divided *"),
        tested(
            "batch-renamed",
            "a batch of a stream is written again under another id *",
            test_of(
                "helix-agents-runtime-local",
                "late_batch::a_batch_whose_response_is_lost_is_shown_once",
            ),
        ),
        mutant("stream-left", "a deleted session leaves its stream *"),
        mutant("stream-waited-for", "runs wait for unavailable streams *"),
        mutant("answers-forgotten", "a stream writes a repeated batch again *"),
        mutant("mark-first", "the stream is marked before the append"),
        mutant("fence-ignored", "a superseded run continues"),
        mutant("lease-taken", "a run starts although another one has the lease"),
        mutant("answered-twice", "a call that was answered is answered again"),
        mutant(
            "start-not-recorded",
            "a call that must not run twice runs before its start is recorded",
        ),
        mutant("doubt-ignored", "a call with an unknown outcome is run again"),
        mutant("append-not-known", "a repeated append is not recognised"),
        mutant("facts-dropped", "a conflict loses results that were not appended yet"),
        mutant("child-renamed", "the child of a call has another id in each run"),
        mutant("budget-not-counted", "model calls are not counted against the budget"),
        mutant("message-twice", "a message that was delivered is queued again"),
        mutant("interrupt-ignored", "a step starts although the run was interrupted"),
        tested(
            "attempts-left",
            "a takeover neither commits nor discards the previous run's attempts",
            test_of("helix-agents-core", "align::a_replaced_run_discards_nothing_of_its_successor"),
        ),
        mutant(
            "boundaries-repeated",
            "the stream shows the starts and ends of runs and steps twice",
        ),
        mutant("deadline-ignored", "an answer is accepted after the deadline"),
        mutant("head-not-kept", "the head does not follow the log"),
        mutant("child-usage-lost", "the usage of a child is not reported to its parent"),
        mutant("hooks-told-twice", "hooks run again for results"),
        mutant("decisions-kept", "events that were computed before a conflict are kept after it"),
        tested(
            "late-result-repeated",
            "a late result of a call that runs again is shown twice",
            test_of(
                "helix-agents-runtime-local",
                "late_results::a_late_result_of_a_call_that_runs_again_is_shown_once",
            ),
        ),
        tested(
            "child-end-not-shown",
            "a parent does not show the end of a child",
            test_of(
                "helix-agents-runtime-local",
                "stream_after_takeover::the_end_of_a_child_of_a_crashed_process_is_shown",
            ),
        ),
        tested(
            "lease-from-answer",
            "the lease is timed from the reply, not from the request",
            test_of(
                "helix-agents-runtime",
                "lease_view::tests::the_lease_counts_from_the_time_of_sending",
            ),
        ),
    ];

    /// Selects the mutant with this name, or none. Returns `false` if there is no such mutant.
    pub fn select(name: Option<&str>) -> bool {
        let number = number_of(name);
        if let Some(number) = number {
            SELECTED.store(number, Ordering::Relaxed);
        }
        number.is_some()
    }

    fn number_of(name: Option<&str>) -> Option<usize> {
        let Some(name) = name else { return Some(0) };
        ALL.iter().position(|mutant| mutant.name == name).map(|index| index + 1)
    }

    /// Returns `true` if the mutant with this name is selected.
    #[must_use]
    pub fn is_selected(name: &str) -> bool {
        let selected = SELECTED.load(Ordering::Relaxed);
        selected > 0 && ALL.get(selected - 1).is_some_and(|mutant| mutant.name == name)
    }
}

#[cfg(feature = "mutants")]
pub use selected::{ALL, ENVIRONMENT, Mutant, MutantTest, is_selected, select};

/// Whether the mutant with this name is selected: `false`, unless the feature `mutants` is enabled.
#[cfg(feature = "mutants")]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutants::is_selected($name)
    };
}

/// Whether the mutant with this name is selected: `false`, unless the feature `mutants` is enabled.
#[cfg(not(feature = "mutants"))]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        false
    };
}
