//! Conformance tests for the executor contract: every runtime runs the same scenarios with the same
//! expectations.
//!
//! A runtime's test binary implements [`RuntimeHarness`] and expands `runtime_suite!` in a module named
//! `parity`.

pub mod aborts;
pub mod adapters;
pub mod ancestors;
pub mod answers;
pub mod approvals;
pub mod budgets;
pub mod children;
pub mod companions;
pub mod content;
pub mod files;
pub mod finishing;
pub mod forks;
pub mod hooks;
pub mod imports;
pub mod interleavings;
pub mod large;
pub mod limits;
pub mod log_events;
pub mod observers;
pub mod ownership;
pub mod panics;
pub mod parts;
pub mod pauses;
pub mod phases;
pub mod processes;
pub mod read_costs;
pub mod requests;
pub mod restarts;
pub mod rewinds;
pub mod stream_outages;
pub mod streams;
mod support;
pub mod tags;
pub mod takeovers;
pub mod tools;
pub mod traces;
pub mod usage;
pub mod values;
pub mod waiting;
pub mod waiting_children;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::observer::LogObserver;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;

/// A runtime under test.
#[async_trait]
pub trait RuntimeHarness: Send + Sync {
    /// Returns the store of the logs: the same for everything booted on one harness, and different for every
    /// harness.
    fn store(&self) -> Arc<dyn StateStore>;

    /// Returns the stream manager.
    fn streams(&self) -> Arc<dyn StreamManager>;

    /// Starts a fresh simulated process on the current content of the store.
    ///
    /// An executor executes the runs that it starts or continues in its own world: with its model, its store
    /// and its agents, never with those of another boot. A runtime whose server distributes the work gives
    /// each boot a queue of its own.
    async fn boot(&self, world: World) -> Arc<dyn AgentExecutor>;

    /// Ends everything that was booted, as SIGKILL does: at any point, without notice.
    async fn kill(&self);

    /// Returns the records that the engine keeps about the runs of these sessions outside the store, such as
    /// its tables or histories. Empty for an engine that keeps nothing.
    async fn engine_records(&self, _sessions: &[SessionId]) -> String {
        String::new()
    }
}

/// The configuration of a booted executor.
#[derive(Debug, Clone)]
pub struct World {
    /// The model of the executor.
    pub llm: Arc<dyn LlmAdapter>,
    /// A store with faults that replaces the harness's store.
    pub store: Option<Arc<dyn StateStore>>,
    /// Streams with faults that replace the harness's streams.
    pub streams: Option<Arc<dyn StreamManager>>,
    /// The duration of a lease.
    pub lease: Duration,
    /// The time that cancelled tools may take to stop.
    pub grace: Duration,
    /// The agents by name.
    pub registry: AgentRegistry,
    /// Whether an answer resumes its session.
    pub auto_resume: bool,
    /// The observers of the log.
    pub observers: Vec<Arc<dyn LogObserver>>,
}

impl World {
    /// Creates a world with this model, a long lease and a short grace period.
    pub fn new(llm: impl LlmAdapter) -> Self {
        Self {
            llm: Arc::new(llm),
            store: None,
            streams: None,
            lease: Duration::from_secs(30),
            grace: Duration::from_millis(100),
            registry: AgentRegistry::default(),
            auto_resume: false,
            observers: Vec::new(),
        }
    }

    /// Replaces the harness's store.
    #[must_use]
    pub fn with_store(mut self, store: impl StateStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Replaces the harness's streams.
    #[must_use]
    pub fn with_streams(mut self, streams: impl StreamManager) -> Self {
        self.streams = Some(Arc::new(streams));
        self
    }

    /// Registers an agent.
    #[must_use]
    pub fn registered<O>(self, agent: &Agent<O>) -> Self {
        self.registry.replace(agent);
        self
    }

    /// Adds an observer of the log.
    #[must_use]
    pub fn observed_by(mut self, observer: impl LogObserver) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Makes answers resume their session.
    #[must_use]
    pub fn auto_resuming(mut self) -> Self {
        self.auto_resume = true;
        self
    }

    /// Sets a lease that a test can wait for: as short as a busy machine can renew.
    #[must_use]
    pub fn short_lease(mut self) -> Self {
        self.lease = Duration::from_secs(1);
        self
    }
}

/// Expands every scenario into a test. `$harness` is an async function without parameters that returns a
/// fresh [`RuntimeHarness`].
///
/// # Examples
///
/// The suite for a runtime that `start_runtime` builds, on a store in memory:
///
/// ```
/// use helix_agents_conformance::runtime_suite::RuntimeHarness;
/// use helix_agents_conformance::runtime_suite::processes::{
///     ProcessConfig, Processes, StartedProcess,
/// };
/// use helix_agents_store_memory::MemoryStore;
/// # use std::sync::Arc;
/// # use helix_agents_core::executor::AgentExecutor;
/// # fn start_runtime(_with: ProcessConfig) -> Arc<dyn AgentExecutor> { unreachable!() }
///
/// async fn boot(with: ProcessConfig) -> StartedProcess {
///     StartedProcess { executor: start_runtime(with), worker: Box::new(()) }
/// }
///
/// async fn harness() -> impl RuntimeHarness {
///     Processes::new(MemoryStore::new(), (), boot)
/// }
///
/// helix_agents_conformance::runtime_suite!(harness);
/// ```
#[macro_export]
macro_rules! runtime_suite {
    ($harness:path) => {
        $crate::__runtime_scenarios! { $harness;
            answers: text_completes_the_turn;
            answers: text_up_to_a_stop_sequence_completes_the_turn;
            answers: thinking_is_kept_and_shown;
            answers: custom_chunks_of_an_adapter_are_shown;
            answers: a_completed_session_continues_with_its_history;
            answers: a_session_whose_stream_was_lost_continues_with_a_new_one;
            answers: a_second_execute_under_the_same_run_id_attaches;
            answers: of_concurrent_creators_exactly_one_wins;
            answers: a_turn_may_start_with_a_new_state;
            answers: another_agents_session_is_refused;
            answers: a_failing_model_fails_the_run_and_a_resume_continues;
            answers: an_interrupted_reply_is_requested_again_and_its_text_is_not_recorded;
            answers: replies_that_keep_breaking_off_fail_the_run;
            answers: error_stop_reasons_fail_the_run;
            parts: the_next_request_has_the_parts_of_a_reply_unchanged;
            parts: a_process_that_takes_over_sends_the_parts_of_a_reply_back;
            parts: a_resumed_session_sends_the_parts_of_a_reply_back;
            parts: forks_and_rewound_sessions_send_the_parts_of_a_reply_back;
            pauses: a_paused_reply_is_sent_back_and_continued;
            pauses: a_reply_that_is_paused_with_calls_is_continued_with_their_results;
            pauses: a_paused_reply_is_not_corrected;
            pauses: paused_replies_count_against_the_step_limit;
            pauses: a_message_waits_until_a_paused_reply_is_continued;
            pauses: a_process_that_takes_over_continues_a_paused_reply;
            adapters: an_agent_with_an_adapter_does_not_use_that_of_the_runtime;
            adapters: an_interrupt_reaches_an_adapter;
            adapters: an_abort_reaches_an_adapter;
            adapters: an_abort_reaches_the_adapter_of_a_sub_agent;
            adapters: an_abort_of_a_waiting_session_reaches_the_adapter;
            files: files_of_messages_and_results_are_sent_to_the_model;
            files: files_survive_the_process;
            files: a_file_that_is_sent_to_a_running_session_is_read;
            files: a_file_that_is_sent_with_a_resume_is_read;
            tools: results_stand_in_call_order_whatever_the_order_of_their_ends;
            tools: a_failing_tool_is_reported_to_the_model;
            tools: unknown_tools_and_bad_arguments_are_answered_without_running;
            tools: calls_of_a_cut_off_reply_are_not_run;
            tools: a_panic_is_contained;
            tools: a_hanging_tool_is_timed_out;
            tools: a_passing_failure_is_tried_again;
            tools: a_result_over_the_limit_is_refused;
            tools: concurrency_is_bounded;
            tools: state_changes_of_parallel_tools_merge_in_call_order;
            read_costs: a_turn_reads_only_new_events;
            read_costs: a_process_that_has_not_looked_before_reads_the_end_of_a_long_log;
            values: of_an_enum_changed_by_parallel_tools_the_later_calls_value_wins;
            values: a_state_that_does_not_read_back_is_refused;
            values: arguments_that_no_reader_accepts_are_answered_and_not_run;
            content: errors_of_tools_and_hooks_repeat_no_content;
            content: errors_of_refusals_repeat_no_content;
            content: errors_of_states_repeat_no_content;
            content: errors_of_outputs_repeat_no_content;
            content: errors_of_answers_repeat_no_content;
            content: panics_repeat_no_content;
            tools: a_tool_shows_progress_and_custom_chunks;
            tools: the_idempotency_key_is_the_same_for_every_try;
            finishing: the_finish_call_is_paired_and_never_shown;
            finishing: calls_next_to_the_finish_are_answered_and_not_run;
            finishing: an_output_that_does_not_fit_is_asked_for_again;
            finishing: an_output_that_never_fits_fails_the_run;
            finishing: text_instead_of_the_output_is_corrected_and_the_tool_forced;
            finishing: a_cut_off_answer_is_corrected_and_fails_as_max_tokens;
            finishing: a_nearly_right_output_is_repaired;
            finishing: a_native_output_is_corrected_and_recorded;
            finishing: finish_tools_run_after_the_others_and_see_their_state;
            finishing: the_first_finish_tool_that_succeeds_gives_the_output;
            finishing: a_finish_tool_that_fails_does_not_complete;
            finishing: a_transform_that_fails_fails_the_run;
            finishing: a_finish_result_that_does_not_fit_fails_without_retry;
            limits: the_step_limit_fails_the_run_and_the_session_can_continue;
            limits: stop_when_completes_without_output;
            budgets: a_budget_of_tokens_ends_the_run_until_it_is_raised;
            budgets: a_budget_of_steps_ends_the_run_until_it_is_raised;
            budgets: a_budget_of_money_ends_the_run_until_it_is_raised;
            budgets: a_budget_of_tool_calls_holds_to_the_call;
            budgets: the_last_tool_call_of_a_budget_may_be_answered;
            budgets: tools_do_not_start_on_a_budget_that_is_used_up;
            budgets: the_reply_that_reaches_the_limit_may_complete;
            budgets: a_budget_of_time_ends_the_run;
            budgets: waiting_for_answers_uses_no_time_of_a_budget;
            budgets: failed_model_calls_count;
            budgets: failed_attempts_count;
            budgets: a_budget_and_what_was_spent_survive_the_process;
            budgets: money_is_not_limited_without_prices;
            budgets: a_hook_cannot_choose_a_model_without_a_price;
            budgets: children_share_what_is_left_and_give_back_the_rest;
            budgets: a_child_that_exhausts_its_budget_is_a_failed_call;
            budgets: an_allowance_survives_the_process;
            usage: usage_over_sessions_is_what_their_logs_say;
            usage: failed_attempts_and_cache_writes_are_added_up;
            requests: an_interrupted_run_stops_at_the_step_boundary_and_resumes;
            requests: an_abort_cancels_the_model_call;
            requests: an_abort_cancels_tools_and_answers_their_calls;
            requests: a_request_to_an_ended_run_is_refused;
            requests: resuming_what_is_complete_is_refused;
            streams: a_deleted_session_leaves_no_stream;
            streams: deleting_in_the_store_forgets_the_stream_it_keeps;
            streams: leftovers_of_an_earlier_session_hide_no_chunks_of_the_next;
            streams: the_stream_of_an_ended_run_ends_whatever_is_left_of_it;
            streams: the_stream_of_an_ended_child_ends_whatever_is_left_of_it;
            streams: a_reader_of_a_run_ends_with_it_when_its_stream_is_forgotten;
            streams: a_page_states_whether_more_chunks_follow;
            requests: a_start_with_the_id_of_a_queued_message_attaches;
            requests: executing_on_a_live_session_is_refused;
            requests: a_run_elsewhere_can_be_followed_and_interrupted;
            requests: a_dead_session_can_be_aborted;
            requests: an_abort_that_an_append_reads_waits_for_results;
            takeovers: an_abort_outlives_the_owner_of_its_run;
            takeovers: an_interrupt_outlives_the_owner_of_its_run;
            takeovers: nothing_clears_an_abort;
            takeovers: an_explicit_resume_clears_an_interrupt;
            takeovers: an_interrupt_outlives_a_suspension;
            takeovers: a_takeover_passes_an_interrupt_down;
            takeovers: a_takeover_passes_an_abort_down;
            takeovers: an_explicit_resume_clears_an_interrupt_for_children_too;
            takeovers: a_child_that_stops_after_the_resume_is_resumed_too;
            takeovers: a_takeover_that_is_to_stop_starts_no_child;
            takeovers: a_child_left_over_by_an_abort_is_aborted_by_a_sweep;
            takeovers: an_abort_leaves_no_ended_child_without_an_end_in_the_stream;
            takeovers: a_turn_after_an_abort_shows_the_end_of_an_ended_child;
            takeovers: a_session_that_cannot_be_resumed_keeps_no_other_from_a_sweep;
            approvals: a_step_waits_for_answers_and_continues_with_them;
            approvals: a_denied_call_is_not_run_and_an_edited_one_runs_as_edited;
            approvals: a_partly_answered_step_suspends_again_on_the_rest;
            approvals: an_unanswered_call_fails_at_its_deadline_and_late_answers_are_refused;
            approvals: answers_enter_in_call_order_and_a_failure_as_one;
            approvals: every_wrong_answer_has_an_error_of_its_own;
            approvals: a_recorded_answer_is_reported_as_recorded;
            approvals: one_of_ten_answers_is_accepted;
            approvals: a_message_to_an_answered_session_enters_when_the_step_is_done;
            approvals: one_of_several_resumers_after_an_answer_runs;
            children: a_sub_agent_answers_like_a_tool;
            children: a_sub_agent_that_fails_does_not_disturb_its_siblings;
            children: a_restart_continues_a_child_where_it_stopped;
            children: hooks_of_the_caller_wrap_those_of_the_child;
            children: chunks_of_a_child_arrive_live;
            children: a_child_whose_lease_outlives_its_parents_is_continued;
            waiting_children: a_parent_waits_while_its_child_waits_for_an_answer;
            waiting_children: a_child_that_waits_for_an_answer_occupies_no_slot;
            waiting_children: children_are_started_a_few_at_a_time;
            waiting_children: a_slow_child_holds_no_other;
            waiting_children: an_interrupt_reaches_a_child_and_resuming_too;
            waiting_children: an_abort_reaches_a_child;
            waiting_children: an_abort_reaches_a_child_that_waits;
            waiting_children: a_waiting_family_can_be_aborted;
            waiting_children: a_waiting_grandchild_suspends_its_ancestors;
            companions: a_blocking_companion_answers_and_accepts_another_message;
            companions: an_ended_companion_resumes_under_its_name;
            companions: a_background_companion_reports_its_completion;
            companions: a_companion_that_outlives_the_turn_reports_in_the_next_one;
            companions: a_companion_can_be_terminated;
            companions: a_companion_that_has_ended_can_be_terminated;
            companions: a_message_reaches_a_companion_at_work;
            companions: mistakes_with_companions_are_reported_to_the_model;
            companions: the_number_of_companions_is_limited;
            companions: a_parent_waits_while_its_companion_waits_for_an_answer;
            companions: a_restart_continues_a_companion_where_it_stopped;
            companions: a_companion_keeps_its_state_between_messages;
            companions: children_that_stay_are_listed_and_others_not;
            companions: how_a_child_is_can_be_asked_at_any_time;
            companions: a_caller_may_wait_for_a_background_companion;
            ancestors: hooks_run_for_every_call_in_call_order;
            ancestors: hooks_run_after_a_crash_for_results_recorded_before_it;
            ancestors: hooks_run_for_every_end_in_an_aborted_tree;
            ancestors: a_child_is_aborted_under_the_hooks_of_its_parent;
            ancestors: a_child_is_resumed_under_the_hooks_of_its_parent;
            ancestors: an_owner_passes_an_interrupt_down;
            ancestors: what_outlives_its_parent_is_counted;
            phases: sub_agents_run_concurrently_with_the_tools_of_a_reply;
            phases: a_sub_agent_next_to_a_finish_tool_ends_first;
            phases: companion_calls_come_last;
            phases: a_sub_agent_may_end_by_a_finish_tool;
            phases: hooks_run_once_for_every_way_to_complete;
            hooks: hooks_run_in_their_order;
            hooks: hooks_receive_results_in_call_order;
            hooks: a_hook_refuses_and_changes_calls;
            hooks: a_hooks_state_change_rides_in_the_step;
            aborts: an_overtaken_abort_calls_hooks_once;
            aborts: an_abort_after_another_run_reports_its_open_calls;
            aborts: a_stop_of_an_earlier_run_leaves_the_next_one;
            aborts: an_abort_of_a_run_that_was_resumed_leaves_the_next_one;
            hooks: a_finish_tool_has_the_hooks_of_any_other_and_shows_what_it_does;
            hooks: after_tool_runs_for_calls_that_failed_or_were_refused;
            hooks: hooks_run_when_a_child_is_suspended;
            hooks: hooks_run_for_an_approved_call_and_for_an_unanswered_one;
            hooks: hooks_run_for_a_suspension_and_for_the_answers;
            restarts: a_restart_does_not_repeat_a_recorded_tool_call;
            restarts: a_restart_in_a_tool_runs_it_again_under_the_same_key;
            restarts: an_at_most_once_tool_is_not_run_again;
            restarts: after_a_shutdown_another_process_continues_the_session;
            large: results_that_do_not_share_an_append_are_recorded_once;
            large: a_process_that_crashes_between_two_appends_is_continued;
            large: a_reply_that_is_too_large_fails_the_run;
            large: a_result_that_is_too_large_is_read_as_an_error;
            large: a_file_that_is_too_large_is_read_as_an_error;
            large: large_invalid_arguments_are_answered;
            panics: a_transform_that_panics_fails_the_run;
            panics: hooks_that_panic_are_hooks_that_failed;
            panics: hooks_that_panic_when_they_are_asked_refuse;
            panics: a_prompt_that_panics_fails_the_run;
            panics: a_stop_condition_that_panics_fails_the_run;
            panics: a_model_adapter_that_panics_fails_the_run;
            panics: a_sub_agent_whose_input_panics_is_a_failed_call;
            panics: a_call_that_crashes_every_process_is_abandoned;
            panics: a_model_call_that_crashes_every_process_is_abandoned;
            restarts: a_key_does_not_follow_what_a_hook_changes;
            restarts: a_key_follows_what_an_approver_edits;
            restarts: an_at_most_once_tool_is_reconciled;
            restarts: a_tool_that_is_gone_after_a_restart_is_missing;
            restarts: a_restart_in_the_model_call_calls_the_model_again;
            restarts: of_many_resumers_exactly_one_runs;
            waiting: a_message_that_lands_while_the_run_ends_is_answered;
            waiting: an_interrupt_that_lands_while_the_run_ends_is_void;
            waiting: an_answer_that_lands_while_the_run_suspends_is_taken_at_once;
            waiting: one_of_two_automatic_resumers_runs;
            waiting: a_sweep_resumes_a_session_after_the_deadline_and_not_before;
            waiting: either_the_sweeper_or_the_caller_resumes;
            waiting: a_late_sweep_leaves_a_session_that_failed_meanwhile;
            waiting: an_approved_call_that_was_killed_is_not_run_again;
            waiting: a_child_that_finished_while_its_parent_was_down_is_reported;
            waiting: a_companion_that_crashed_after_its_end_is_still_reported;
            waiting: a_page_and_what_follows_have_no_gap_and_no_repetition;
            forks: a_fork_and_its_original_run_independently;
            forks: a_fork_with_the_same_answers_has_the_same_transcript;
            forks: the_stream_of_a_fork_is_its_own;
            forks: a_fork_survives_the_crash_of_its_creator;
            forks: a_fork_whose_answer_is_lost_is_made_once;
            forks: a_fork_of_a_child_is_a_root;
            forks: checkpoints_are_a_sessions_own;
            rewinds: a_session_goes_back_to_a_checkpoint_and_on;
            rewinds: a_session_goes_back_and_on_with_a_message;
            rewinds: a_session_goes_back_to_its_start;
            rewinds: a_failed_aborted_or_waiting_session_goes_back;
            rewinds: a_dead_session_goes_back;
            rewinds: a_restart_after_a_rewind_continues_from_the_checkpoint;
            rewinds: of_many_that_go_back_exactly_one_does;
            rewinds: a_fork_or_rewind_to_no_checkpoint_is_refused;
            rewinds: a_rewind_is_refused_while_a_child_is_open;
            imports: a_turn_on_an_imported_log_heals_it_first;
            imports: resuming_an_imported_log_heals_it_first;
            imports: a_fork_of_an_imported_log_is_healed;
            ownership: a_process_that_stood_still_starts_no_queued_call;
            ownership: a_process_that_stood_still_in_a_prompt_makes_no_model_call;
            ownership: an_abort_starts_no_queued_call;
            ownership: a_hook_that_outlasts_the_lease_keeps_it;
            ownership: results_are_recorded_before_their_hooks_run;
            ownership: a_start_is_recorded_when_its_call_has_a_slot;
            ownership: a_takeover_has_a_greater_fencing_token;
            tags: a_session_without_the_required_tag_is_not_found;
            tags: a_label_does_not_replace_a_required_tag;
            tags: every_operation_requires_its_tag;
            tags: an_operation_does_not_reach_the_session_of_another_owner;
            tags: sessions_and_their_forks_are_listed_by_tag;
            traces: a_turn_belongs_to_the_trace_of_its_caller;
            traces: a_turn_that_failed_or_was_rewound_has_its_trace;
            traces: a_resumed_turn_stays_in_its_trace;
            traces: a_tool_has_the_trace_of_its_call;
            observers: each_event_is_reported_by_the_process_that_appended_it;
            observers: a_process_that_takes_over_reports_the_last_events_again;
            observers: the_events_of_two_killed_processes_are_reported_again;
            observers: a_panic_of_an_observer_is_contained;
            log_events: a_waiting_call_and_its_answers_are_logged;
            log_events: an_expired_call_is_logged;
            log_events: an_aborted_call_is_logged;
            log_events: failures_are_logged_with_their_codes;
            log_events: a_takeover_is_logged;
            stream_outages: unavailable_streams_cost_a_moment;
            stream_outages: streams_that_never_answer_cost_a_moment;
            interleavings: a_lost_reply_is_resolved_by_asking_again;
            interleavings: an_append_that_never_arrived_is_sent_again;
            interleavings: a_run_continues_without_its_caller;
            interleavings: a_stranger_at_the_same_version_is_history_lost;
            interleavings: a_request_between_fold_and_append_changes_the_decision;
            interleavings: a_late_resumer_learns_that_another_run_ended;
            interleavings: an_owner_that_is_slow_and_not_dead_is_superseded;
            interleavings: an_owner_with_a_long_effect_keeps_its_lease;
            interleavings: an_owner_that_cannot_renew_stops;
            interleavings: a_full_store_stops_the_run_and_loses_nothing;
            interleavings: a_log_of_an_unknown_schema_is_left_alone;
            interleavings: a_result_of_an_older_run_is_taken_as_the_truth;
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __runtime_scenarios {
    ($harness:path; $($area:ident: $scenario:ident;)+) => {$(
        #[test]
        fn $scenario() {
            $crate::scenario::run(stringify!($scenario), async || {
                $crate::runtime_suite::$area::$scenario(&$harness().await).await;
            });
        }
    )+};
}
