//! Three nodes, among which sessions and indexes are spread.

use std::time::{Duration, Instant};

use helix_agents_testkit::{store_suite as state, stream_suite as stream};

use super::server::Server;
use super::support::Corner;

const SLOTS: u16 = 16_384;

/// Starts the nodes, tells them of each other, and waits until all slots are served.
async fn nodes() -> [Server; 3] {
    let settings = ["--cluster-enabled", "yes", "--appendonly", "yes"];
    let nodes = [0, 1, 2].map(|_| Server::with(&settings));
    for (number, node) in (0..).zip(&nodes) {
        let mut connection = node.corner().server();
        let (first, last) = (number * SLOTS / 3, (number + 1) * SLOTS / 3 - 1);
        let mut slots = redis::cmd("CLUSTER");
        slots.arg("ADDSLOTSRANGE").arg(first).arg(last).exec(&mut connection).unwrap();
        for other in &nodes {
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET").arg("127.0.0.1").arg(other.port()).exec(&mut connection).unwrap();
        }
    }
    let begun = Instant::now();
    let is_ready = |node: &Server| -> bool {
        let info: redis::RedisResult<String> =
            redis::cmd("CLUSTER").arg("INFO").query(&mut node.corner().server());
        info.unwrap().contains("cluster_state:ok")
    };
    while !nodes.iter().all(is_ready) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the nodes do not find each other");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    nodes
}

/// Each in a corner of its own; what the suites say of one server holds of a cluster.
macro_rules! all_of {
    ($url:expr, $suite:ident: $($name:ident),+ $(,)?) => {
        $(
            println!(stringify!($name));
            $suite::$name(&Corner::at($url)).await;
        )+
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_the_contracts() {
    let nodes = nodes().await;
    let url = &nodes[1].url();
    all_of! { url, state:
        a_created_session_reads_back_as_it_was_created,
        a_conflict_brings_exactly_the_missed_appends,
        a_repeated_append_is_answered_even_after_later_appends,
        racing_creators_have_exactly_one_winner,
        racing_appends_have_exactly_one_winner,
        sessions_do_not_disturb_each_other,
        a_lease_that_is_held_keeps_others_out,
        sessions_are_listed_newest_first,
        each_filter_selects_alone,
        a_run_whose_lease_ran_out_is_listed_as_expired,
        a_session_is_due_once_its_wake_up_time_has_passed,
        deleting_takes_the_children_along,
        positions_of_a_fork_are_judged_like_any_others,
        a_fork_can_be_read_across_the_seam,
        forks_can_be_forked,
        racing_forks_have_exactly_one_winner,
        what_a_fork_shares_outlives_the_original,
        deleting_a_fork_leaves_the_original,
        ids_are_any_text,
    }
    all_of! { url, stream:
        a_batch_is_written_in_its_order,
        a_reader_follows_what_another_handle_writes,
        beginning_again_discards_the_earlier_attempt_and_announces_it,
        a_mark_announces_what_became_of_attempts_and_then_writes_its_boundaries,
        a_reader_behind_the_trimmed_end_gets_one_resync_and_then_the_rest,
        a_reader_goes_on_after_a_reset,
    }
}
