//! Ways to break a store, each with a scenario that detects it.
//!
//! The suites are only as strict as the breakages that they detect. A correct store passes every scenario
//! (see `main.rs`), so a scenario that fails here fails because of the breakage.

use std::panic::{AssertUnwindSafe, catch_unwind};

use helix_agents_conformance::{backend_suite, scenario, store_suite, stream_suite};

use crate::broken::{Breakage, Harness, Mistake, TagMistake};

/// One test per breakage: the scenario fails on a store with it.
macro_rules! noticed {
    ($($test:ident: $breakage:expr, $suite:ident::$scenario:ident;)+) => {$(
        #[test]
        fn $test() {
            use Breakage::*;
            let breakage = $breakage;
            let scenario = || {
                scenario::run(stringify!($scenario), async move || {
                    $suite::$scenario(&Harness::broken(breakage)).await;
                });
            };
            let passed = catch_unwind(AssertUnwindSafe(scenario)).is_ok();
            assert!(!passed, "{} passes on a store with {breakage:?}", stringify!($scenario));
        }
    )+};
}

noticed! {
    clocks_that_differ:
        ClockPerHandle, store_suite::every_handle_reads_the_same_clock;
    a_lease_that_is_held_at_its_end:
        LeaseHeldAtItsEnd, store_suite::a_lease_is_free_from_the_moment_of_its_end;
    a_lease_that_is_free_before_its_end:
        LeaseFreeBeforeItsEnd, store_suite::a_lease_is_free_from_the_moment_of_its_end;
    a_deadline_that_excludes_its_moment:
        DeadlineExcluded, store_suite::an_append_is_taken_up_to_the_moment_of_its_deadline;
    a_wake_up_time_that_excludes_its_moment:
        MomentNotListed, store_suite::a_session_is_due_from_its_wake_up_time_on;
    a_lease_that_expires_after_its_end:
        MomentNotListed, store_suite::a_lease_is_listed_as_expired_from_the_moment_of_its_end;
    a_renewal_that_only_extends:
        RenewalOnlyExtends, store_suite::a_renewal_may_shorten_the_lease;
    a_lease_that_goes_with_the_run:
        LeaseEndsWithRun, store_suite::a_lease_stays_until_it_is_released_regardless_of_the_summary;
    a_head_that_is_cached_by_its_writer:
        HeadOfWriterCached, store_suite::a_handle_that_wrote_sees_what_others_wrote_since;
    a_child_without_its_parent:
        ParentUnchecked, store_suite::a_child_of_a_missing_session_is_not_created;
    a_child_that_outlives_its_parent:
        ParentUnchecked, store_suite::a_deletion_leaves_no_child_that_is_created_concurrently;
    a_creation_in_two_parts:
        CreatedInParts, store_suite::a_session_that_can_be_seen_has_its_first_append;
    a_fork_in_two_parts:
        CreatedInParts, store_suite::a_fork_that_can_be_seen_has_its_whole_log;
    sessions_without_case:
        Sessions(str_lowercase), store_suite::sessions_whose_ids_look_alike_are_different;
    sessions_without_space:
        Sessions(str_trimmed), store_suite::sessions_whose_ids_look_alike_are_different;
    sessions_of_64_characters:
        Sessions(str_64), store_suite::sessions_whose_ids_look_alike_are_different;
    sessions_of_199_characters:
        Sessions(str_199), store_suite::sessions_whose_ids_look_alike_are_different;
    streams_without_case:
        Sessions(str_lowercase), stream_suite::streams_whose_ids_look_alike_are_different;
    streams_of_64_characters:
        Sessions(str_64), stream_suite::streams_whose_ids_look_alike_are_different;
    appends_without_case:
        Appends(str_lowercase), store_suite::appends_whose_ids_look_alike_are_different;
    appends_of_64_characters:
        Appends(str_64), store_suite::appends_whose_ids_look_alike_are_different;
    runs_without_case:
        Runs(str_lowercase), store_suite::runs_and_agents_whose_names_look_alike_are_different;
    runs_without_space:
        Runs(str_trimmed), store_suite::runs_and_agents_whose_names_look_alike_are_different;
    ids_that_are_not_checked:
        IdsUnchecked, store_suite::other_ids_are_refused_by_the_same_rule;
    a_schema_of_one_byte:
        SchemaOfOneByte, store_suite::the_largest_numbers_come_back;
    a_count_of_two_bytes:
        CountOfTwoBytes, store_suite::the_largest_numbers_come_back;
    ten_missed_appends:
        Missed(10), store_suite::a_conflict_brings_hundreds_of_missed_appends;
    a_hundred_missed_appends:
        Missed(100), store_suite::a_conflict_brings_hundreds_of_missed_appends;
    a_list_by_the_last_append:
        ListedByUpdate, store_suite::sessions_are_listed_by_creation_whatever_is_appended_later;
    a_list_by_name:
        ListedByName, store_suite::sessions_are_listed_by_creation_whatever_is_appended_later;
    a_purge_by_creation:
        PurgedByCreation, store_suite::an_old_session_with_a_late_append_is_not_purged;
    a_deletion_without_its_condition:
        TagsNotRequired, store_suite::only_a_session_with_the_required_tags_is_deleted;
    bodies_that_outlive_their_session:
        BodiesKept, store_suite::nothing_of_a_deleted_session_is_kept;
    streams_that_outlive_their_session:
        StreamsKept, backend_suite::a_deleted_session_leaves_no_stream;
    streams_of_sessions_that_were_there_before:
        StreamsKept, backend_suite::a_session_that_is_created_anew_has_a_stream_of_its_own;
    streams_that_outlive_a_purge:
        StreamsKept, backend_suite::a_purged_tree_leaves_no_stream;
    streams_that_are_forgotten_although_they_have_changed:
        ForgetsChanged, stream_suite::a_stream_that_has_changed_is_not_forgotten;
    eight_answers:
        Answers(8), stream_suite::the_last_batches_of_a_stream_are_known_again;
    thirty_two_answers:
        Answers(32), stream_suite::the_last_batches_of_a_stream_are_known_again;
    streams_that_go_with_another_session:
        Sessions(str_lowercase), backend_suite::deleting_a_session_leaves_the_streams_of_others;
    batches_that_are_overtaken:
        QueueOvertaken, backend_suite::writes_of_one_queue_are_executed_in_order;
    the_last_snapshot_instead_of_the_newest:
        LastSnapshot, store_suite::the_newest_snapshot_is_kept;
    a_race_that_the_last_snapshot_wins:
        LastSnapshot, store_suite::of_racing_snapshots_the_newest_is_kept;
    a_snapshot_beyond_the_log:
        LastSnapshot, store_suite::a_snapshot_beyond_the_log_is_not_kept;
    snapshots_that_outlive_their_session:
        SnapshotsKept, store_suite::a_snapshot_goes_with_its_session;
    snapshots_that_are_forked:
        SnapshotsForked, store_suite::a_fork_has_no_snapshot_of_its_original;
    snapshots_that_others_do_not_see:
        SnapshotsPerHandle, store_suite::a_snapshot_is_read_back_as_it_was_saved;
    tags_that_are_ignored:
        Tags(TagMistake::Ignored), store_suite::sessions_are_listed_by_a_tag;
    tags_of_which_the_first_is_compared:
        Tags(TagMistake::FirstOnly), store_suite::all_tags_of_a_filter_hold_together;
    tags_that_replace_other_conditions:
        Tags(TagMistake::OthersIgnored), store_suite::tags_hold_together_with_other_conditions;
    lists_by_tag_without_pages:
        Tags(TagMistake::Unpaged), store_suite::a_list_by_tag_can_be_read_in_pages;
    tags_without_case:
        Tags(TagMistake::Values(str_lowercase)), store_suite::tags_are_any_text;
    tags_of_64_characters:
        Tags(TagMistake::Values(str_64)), store_suite::tags_are_any_text;
    tags_that_come_later:
        Tags(TagMistake::Later), store_suite::a_session_and_its_tags_become_visible_together;
    tags_that_are_forked:
        Tags(TagMistake::Forked), store_suite::a_fork_has_tags_of_its_own;
    tags_that_outlive_their_session:
        Tags(TagMistake::Kept), store_suite::tags_go_with_their_session;
    tags_of_creations_that_were_refused:
        Tags(TagMistake::OfRefused), store_suite::a_refused_creation_leaves_the_tags;
    sixty_three_tags:
        Tags(TagMistake::UpTo(63)), store_suite::the_longest_tags_are_listed;
    tags_that_are_not_checked:
        Tags(TagMistake::Unchecked), store_suite::tags_beyond_the_limits_are_refused;
    usage_that_is_cleared:
        UsageCleared, store_suite::an_append_without_usage_keeps_the_stored_usage;
    usage_of_appends_that_were_not_taken:
        UsageOfRefused, store_suite::an_append_that_is_not_taken_leaves_the_usage;
    usage_that_is_forked:
        UsageForked, store_suite::a_fork_has_the_usage_of_its_own_appends;
    usage_that_outlives_its_session:
        UsageKept, store_suite::usage_goes_with_its_session;
    usage_that_comes_later:
        UsageLater, store_suite::usage_and_head_become_visible_together;
    snapshots_of_any_size:
        LastSnapshot, store_suite::a_snapshot_over_the_limit_is_too_large;
    sixty_three_answers:
        Answers(63), stream_suite::the_last_batches_of_a_stream_are_known_again;
    tokens_that_are_ignored:
        Writers(Mistake::TokensIgnored), stream_suite::a_superseded_run_writes_nothing_more;
    tokens_of_others_that_are_unknown:
        Writers(Mistake::OthersUnknown), stream_suite::a_superseded_run_writes_nothing_more;
    late_chunks_that_are_taken:
        Writers(Mistake::ChunksTaken), stream_suite::a_superseded_run_writes_nothing_more;
    late_tries_that_are_taken:
        Writers(Mistake::TriesTaken), stream_suite::a_superseded_run_writes_nothing_more;
    late_marks_that_are_taken:
        Writers(Mistake::MarksTaken), stream_suite::a_superseded_run_writes_nothing_more;
    marks_that_supersede_nothing:
        Writers(Mistake::MarksSupersedeNothing),
        stream_suite::a_watermark_of_a_later_run_discards_unsettled_attempts;
    tries_that_supersede_nothing:
        Writers(Mistake::TriesSupersedeNothing),
        stream_suite::a_run_that_tries_something_supersedes_earlier_ones;
    handles_that_are_runs:
        Writers(Mistake::HandlesAreRuns), stream_suite::workers_of_one_run_do_not_supersede_each_other;
    sessions_that_share_a_token:
        Writers(Mistake::SessionsShareToken), stream_suite::runs_supersede_those_of_their_own_session_only;
    tokens_that_outlive_a_reset:
        Writers(Mistake::TokensKept), stream_suite::a_reset_stream_forgets_earlier_runs;
    tokens_that_outlive_their_stream:
        Writers(Mistake::TokensKept), stream_suite::a_deleted_stream_forgets_earlier_runs;
    watermarks_that_outlive_their_session:
        Writers(Mistake::CreationIgnored),
        stream_suite::a_watermark_of_a_deleted_session_hides_no_chunks_of_its_successor;
    sessions_that_are_not_checked:
        Writers(Mistake::SessionsUnchecked),
        stream_suite::a_batch_for_another_session_than_its_writers_writes_nothing;
}

fn str_lowercase(id: &str) -> String {
    id.to_lowercase()
}

fn str_trimmed(id: &str) -> String {
    id.trim().to_owned()
}

fn str_64(id: &str) -> String {
    id.chars().take(64).collect()
}

fn str_199(id: &str) -> String {
    id.chars().take(199).collect()
}
