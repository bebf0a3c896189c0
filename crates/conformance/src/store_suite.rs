//! Conformance tests for the [`StateStore`] contract.
//!
//! A store crate writes a [`StoreHarness`] and expands [`store_suite!`](crate::store_suite!) in `mod
//! conformance` of its `tests/it/main.rs`. Every scenario is then a separate test.

use std::sync::Arc;

use async_trait::async_trait;

use helix_agents_core::store::{StateStore, StoreScope};

mod append;
mod clocks;
mod concurrency;
mod create;
mod delete;
mod fork;
mod lease;
mod limits;
mod list;
mod purge;
mod read;
mod repetition;
mod similar_ids;
mod snapshot;
pub(crate) mod support;
mod tags;
mod usage;
mod visibility;

pub use append::*;
pub use clocks::*;
pub use concurrency::*;
pub use create::*;
pub use delete::*;
pub use fork::*;
pub use lease::*;
pub use limits::*;
pub use list::*;
pub use purge::*;
pub use read::*;
pub use repetition::*;
pub use similar_ids::*;
pub use snapshot::*;
pub use tags::*;
pub use usage::*;
pub use visibility::*;

/// A backend under test.
#[async_trait]
pub trait StoreHarness: Send + Sync {
    /// Returns the scope within which the data of this backend is visible.
    fn scope(&self) -> StoreScope;

    /// Opens a handle. Every handle of one harness sees the same data. No two harnesses share data.
    /// Acknowledged data stays when all handles are dropped, as long as the harness lives.
    ///
    /// If the scope is wider than one process, each handle has connections of its own, as another process
    /// would have.
    async fn open(&self) -> Arc<dyn StateStore>;

    /// Returns `true` if this backend keeps snapshots.
    fn keeps_snapshots(&self) -> bool {
        true
    }

    /// Returns `true` if these bytes are anywhere in the data of the backend, which is inspected without the
    /// store. Returns `None` if the harness cannot inspect the data, or if the backend erases later, as a
    /// log-structured file does.
    async fn contains_bytes(&self, bytes: &[u8]) -> Option<bool> {
        _ = bytes;
        None
    }
}

/// Expands to one `#[test]` per scenario of the [`StateStore`] contract. The argument is the path of an async
/// function that creates a fresh [`StoreHarness`].
///
/// # Examples
///
/// ```
/// # use std::sync::Arc;
/// # use helix_agents_core::store::{StateStore, StoreScope};
/// # use helix_agents_store_memory::MemoryStore;
/// use helix_agents_conformance::store_suite::StoreHarness;
///
/// struct Harness(MemoryStore);
///
/// #[async_trait::async_trait]
/// impl StoreHarness for Harness {
///     fn scope(&self) -> StoreScope { StoreScope::Process }
///
///     async fn open(&self) -> Arc<dyn StateStore> {
///         Arc::new(self.0.clone())
///     }
/// }
///
/// async fn harness() -> Harness { Harness(MemoryStore::new()) }
///
/// helix_agents_conformance::store_suite!(harness);
/// ```
#[macro_export]
macro_rules! store_suite {
    ($harness:path) => {
        $crate::__scenarios! { store_suite, $harness;
            // Create
            a_created_session_reads_back_as_it_was_created,
            a_store_states_its_scope,
            a_store_states_its_guarantees_and_the_reasons,
            creating_an_existing_session_reports_it_and_changes_nothing,
            a_first_append_at_another_position_is_refused,
            a_first_append_without_a_summary_is_refused,
            a_child_of_a_missing_session_is_not_created,
            an_unknown_session_is_not_found,
            // Append
            appends_are_read_back_whole_and_in_order,
            the_head_follows_the_last_append,
            an_append_without_a_summary_leaves_the_summary_as_it_is,
            an_append_at_a_stale_position_is_a_conflict_and_writes_nothing,
            a_conflict_brings_exactly_the_missed_appends,
            a_conflict_brings_hundreds_of_missed_appends,
            the_same_version_under_another_id_is_history_lost,
            a_version_beyond_the_log_is_history_lost,
            a_stale_version_under_a_wrong_id_is_history_lost,
            a_version_in_the_middle_of_an_append_is_history_lost,
            times_never_decrease,
            an_acknowledged_append_is_seen_by_every_handle,
            everything_is_there_after_reopening,
            // Repeat
            a_repeated_create_is_answered_as_the_first_time,
            a_repeated_append_is_answered_as_the_first_time,
            a_repeated_append_is_answered_even_after_later_appends,
            a_repeated_append_is_answered_even_if_its_guard_no_longer_holds,
            a_repetition_at_another_position_is_no_repetition,
            an_append_whose_future_was_dropped_can_be_repeated,
            // Race
            racing_creators_have_exactly_one_winner,
            a_deletion_leaves_no_child_that_is_created_concurrently,
            racing_appends_have_exactly_one_winner,
            racing_repetitions_of_one_append_write_it_once,
            writers_that_retry_after_conflicts_all_succeed,
            a_reader_sees_only_complete_prefixes_during_writes,
            summary_lease_and_events_become_visible_together,
            concurrent_renewals_and_appends_lose_neither,
            sessions_do_not_disturb_each_other,
            // Visibility
            a_handle_that_wrote_sees_what_others_wrote_since,
            a_session_that_can_be_seen_has_its_first_append,
            a_fork_that_can_be_seen_has_its_whole_log,
            // Clocks
            every_handle_reads_the_same_clock,
            a_lease_is_free_from_the_moment_of_its_end,
            an_append_is_taken_up_to_the_moment_of_its_deadline,
            a_session_is_due_from_its_wake_up_time_on,
            a_lease_is_listed_as_expired_from_the_moment_of_its_end,
            // Lease and guard
            a_lease_is_taken_kept_and_cleared,
            a_lease_that_is_held_keeps_others_out,
            an_expired_lease_excludes_no_other_run,
            a_released_lease_excludes_no_other_run,
            an_append_after_its_deadline_is_not_taken,
            a_stale_position_is_a_conflict_even_if_the_guard_fails_too,
            renewing_extends_the_lease_of_the_current_run_and_nothing_else,
            renewing_for_another_run_changes_nothing,
            renewing_without_a_current_run_changes_nothing,
            a_renewal_may_shorten_the_lease,
            a_lease_stays_until_it_is_released_regardless_of_the_summary,
            an_expired_lease_can_be_renewed,
            a_head_contains_the_time_when_it_was_read,
            a_renewal_returns_requests_from_other_processes,
            // Read
            a_log_can_be_read_in_parts,
            reading_at_the_end_is_empty,
            operations_that_are_not_polled_block_no_others,
            // List
            an_empty_store_lists_nothing,
            sessions_are_listed_newest_first,
            sessions_are_listed_by_creation_whatever_is_appended_later,
            each_filter_selects_alone,
            filters_hold_together,
            a_run_with_an_expired_lease_is_listed_as_expired,
            a_session_is_pending_while_calls_wait_for_answers,
            a_session_is_due_once_its_wake_up_time_has_passed,
            a_list_can_be_read_in_pages,
            a_page_continues_within_its_filter,
            a_page_after_a_session_that_is_gone_is_an_error,
            a_page_has_a_largest_size,
            sessions_are_listed_by_when_they_were_created,
            // Tags
            sessions_are_listed_by_a_tag,
            all_tags_of_a_filter_hold_together,
            tags_hold_together_with_other_conditions,
            a_list_by_tag_can_be_read_in_pages,
            tags_go_with_their_session,
            a_fork_has_tags_of_its_own,
            a_refused_creation_leaves_the_tags,
            a_session_and_its_tags_become_visible_together,
            tags_are_any_text,
            the_longest_tags_are_listed,
            tags_beyond_the_limits_are_refused,
            // Usage
            usage_is_that_of_the_last_append,
            an_append_without_usage_keeps_the_stored_usage,
            an_append_that_is_not_taken_leaves_the_usage,
            usage_and_head_become_visible_together,
            a_fork_has_the_usage_of_its_own_appends,
            usage_goes_with_its_session,
            usage_is_listed_as_heads_are,
            // Delete
            deleting_forgets_the_session,
            deleting_takes_the_children_along,
            nothing_of_a_deleted_session_is_kept,
            deleting_again_is_no_error,
            a_deleted_session_can_be_created_anew,
            only_a_session_with_the_required_tags_is_deleted,
            // Purge
            purging_forgets_whole_trees_by_the_state_of_their_root,
            recent_sessions_are_not_purged,
            an_old_session_with_a_late_append_is_not_purged,
            a_tree_with_an_active_run_is_not_purged,
            children_whose_parent_is_gone_are_purged,
            orphans_of_one_tree_are_purged_and_deleted_separately,
            shared_appends_survive_a_purge,
            many_sessions_are_purged_at_once,
            // Fork
            a_fork_starts_with_the_events_of_its_original,
            a_fork_and_its_original_continue_independently,
            positions_of_a_fork_are_judged_like_any_others,
            a_fork_can_be_read_across_the_seam,
            forks_can_be_forked,
            a_fork_from_where_the_original_never_was_is_refused,
            a_repeated_fork_is_answered_as_the_first_time,
            a_shared_append_does_not_identify_the_creation_of_a_fork,
            racing_forks_have_exactly_one_winner,
            a_fork_of_a_live_session_has_its_own_lease,
            shared_appends_survive_the_original,
            deleting_a_fork_leaves_the_original,
            // Snapshot
            a_snapshot_is_read_back_as_it_was_saved,
            the_newest_snapshot_is_kept,
            of_racing_snapshots_the_newest_is_kept,
            a_snapshot_beyond_the_log_is_not_kept,
            a_snapshot_goes_with_its_session,
            a_fork_has_no_snapshot_of_its_original,
            a_snapshot_over_the_limit_is_too_large,
            the_first_look_at_a_long_log_reads_its_end,
            // Similar ids
            sessions_whose_ids_look_alike_are_different,
            appends_whose_ids_look_alike_are_different,
            runs_and_agents_whose_names_look_alike_are_different,
            // Limits
            ids_are_any_text,
            ids_that_no_session_has_are_refused,
            other_ids_are_refused_by_the_same_rule,
            the_largest_numbers_come_back,
            bodies_are_any_bytes,
            a_body_of_ten_megabytes_comes_back_unchanged,
            a_session_of_fifty_thousand_events_is_like_any_other,
            an_append_over_the_limit_is_too_large_and_writes_nothing,
            a_first_append_over_the_limit_creates_nothing,
            an_append_of_no_events_is_refused,
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __scenarios {
    ($suite:ident, $harness:path; $($scenario:ident),+ $(,)?) => {$(
        #[test]
        fn $scenario() {
            $crate::scenario::run(stringify!($scenario), async || {
                $crate::$suite::$scenario(&$harness().await).await;
            });
        }
    )+};
}
