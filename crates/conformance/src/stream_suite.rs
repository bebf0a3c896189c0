//! Conformance tests for the [`StreamManager`] contract.
//!
//! A store crate writes a [`StreamHarness`] and expands [`stream_suite!`](crate::stream_suite!) in `mod
//! stream` of its `tests/it/main.rs`. Every scenario is then a separate test.

use std::sync::Arc;

use async_trait::async_trait;

use helix_agents_core::stream::StreamManager;

mod attempt;
mod batch;
mod follow;
mod forget;
mod mark;
pub(crate) mod support;
mod takeover;
mod trim;
mod write;

pub use attempt::*;
pub use batch::*;
pub use follow::*;
pub use forget::*;
pub use mark::*;
pub use takeover::*;
pub use trim::*;
pub use write::*;

/// A backend under test.
#[async_trait]
pub trait StreamHarness: Send + Sync {
    /// Opens a handle that keeps every chunk of a scenario (some tens of thousands). Every handle of one
    /// harness sees the same streams. No two harnesses share streams.
    ///
    /// If several processes can share the streams, each handle has its own connections, as another process would have.
    async fn open(&self) -> Arc<dyn StreamManager>;

    /// Opens a handle that keeps at least the last `chunks` chunks of each stream, and at most a few thousand more.
    async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager>;

    /// Returns `true` if a reader keeps its state until it is dropped. Returns `false` if a reader is
    /// reopened after an error and then only knows its position.
    fn keeps_readers(&self) -> bool {
        true
    }
}

/// Expands to one `#[test]` per scenario of the [`StreamManager`] contract. The argument is the path of an
/// async function that creates a fresh [`StreamHarness`].
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use helix_agents_core::stream::StreamManager;
/// # use helix_agents_store_memory::{MemoryOptions, MemoryStore};
/// # use helix_agents_conformance::stream_suite::StreamHarness;
/// struct Harness(MemoryStore);
///
/// #[async_trait::async_trait]
/// impl StreamHarness for Harness {
///     async fn open(&self) -> Arc<dyn StreamManager> {
///         Arc::new(self.0.clone())
///     }
///
///     async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
///         Arc::new(MemoryStore::with_options(MemoryOptions::new().stream_retention(chunks)))
///     }
/// }
///
/// async fn harness() -> Harness { Harness(MemoryStore::new()) }
///
/// helix_agents_conformance::stream_suite!(harness);
/// ```
#[macro_export]
macro_rules! stream_suite {
    ($harness:path) => {
        $crate::__scenarios! { stream_suite, $harness;
            // Write
            chunks_are_numbered_from_one_without_gaps,
            chunks_come_back_as_they_were_written,
            writing_nothing_answers_the_last_number,
            batches_of_racing_writers_stay_together,
            streams_of_different_sessions_do_not_mix,
            streams_whose_ids_look_alike_are_different,
            a_writer_that_is_not_polled_blocks_no_others,
            // Batches
            a_batch_is_written_in_its_order,
            refused_chunks_do_not_hold_up_the_rest_of_a_batch,
            a_batch_may_discard_its_own_attempt,
            a_batch_with_an_unknown_attempt_writes_nothing,
            an_empty_batch_writes_nothing,
            a_batch_is_known_again_whatever_other_streams_were_written,
            a_batch_whose_writer_was_dropped_is_written_once,
            the_last_batches_of_a_stream_are_known_again,
            // Read and follow
            a_stream_that_was_never_written_to_is_empty_and_then_follows,
            reading_starts_at_the_given_number,
            reading_catches_up_and_then_follows_without_gap_or_duplicate,
            several_readers_see_the_same,
            a_reader_follows_what_another_handle_writes,
            a_slow_reader_slows_no_writer_and_loses_nothing,
            readers_that_are_not_polled_block_no_others,
            dropping_a_reader_affects_no_other_reader,
            // Attempts
            attempts_have_rising_numbers,
            beginning_again_discards_the_earlier_attempt_and_announces_it,
            attempts_at_different_effects_are_open_side_by_side,
            chunks_of_a_replaced_attempt_are_refused,
            chunks_of_an_unknown_attempt_are_refused,
            a_replay_omits_discarded_chunks_and_keeps_the_numbers,
            a_reader_that_saw_some_gets_the_announcement,
            boundaries_survive_every_discard,
            racing_beginners_leave_one_open_attempt,
            // Watermarks
            a_watermark_announces_attempts_and_then_writes_its_boundaries,
            chunks_of_a_settled_attempt_are_refused,
            chunks_of_an_attempt_that_a_mark_discarded_are_refused,
            what_was_settled_is_never_discarded,
            a_repeated_watermark_announces_nothing_twice,
            marks_never_go_back,
            boundaries_of_an_earlier_watermark_are_skipped,
            sessions_that_share_a_stream_do_not_disturb_each_other,
            info_returns_the_state_of_the_stream,
            // Takeovers
            a_superseded_run_writes_nothing_more,
            a_watermark_of_a_deleted_session_hides_no_chunks_of_its_successor,
            a_watermark_of_a_later_run_discards_unsettled_attempts,
            a_run_that_tries_something_supersedes_earlier_ones,
            workers_of_one_run_do_not_supersede_each_other,
            runs_supersede_those_of_their_own_session_only,
            a_reset_stream_forgets_earlier_runs,
            a_deleted_stream_forgets_earlier_runs,
            a_batch_for_another_session_than_its_writers_writes_nothing,
            // Trim and reset
            a_reader_behind_the_trimmed_end_gets_one_resync_and_then_the_rest,
            a_reader_that_was_overtaken_by_trimming_gets_one_resync,
            a_reset_stream_continues_its_numbers,
            attempts_from_before_a_reset_are_refused,
            a_cursor_from_before_a_reset_gets_one_resync,
            a_reader_continues_after_a_reset,
            a_cursor_beyond_the_end_gets_one_resync,
            // Forget
            a_deleted_stream_equals_a_new_one,
            marks_of_a_forgotten_stream_hide_no_boundaries,
            a_stream_that_has_changed_is_not_forgotten,
            a_reader_of_a_forgotten_stream_gets_one_resync_and_then_the_next,
            a_late_reader_notices_that_a_stream_was_replaced,
        }
    };
}
