//! Three nodes, among which sessions and indexes are spread.

use std::time::{Duration, Instant};

use helix_agents_testkit::{store_suite as state, stream_suite as stream};

use super::server::Server;
use super::support::Corner;

const SLOTS: u16 = 16_384;

/// Nodes that share the slots evenly, in this order.
pub(crate) struct Cluster {
    pub(crate) nodes: [Server; 3],
}

impl Cluster {
    /// Starts the nodes, tells them of each other, and waits until all slots are served.
    pub(crate) async fn start() -> Self {
        let cluster = Self { nodes: [0, 1, 2].map(|_| node()) };
        for (number, node) in (0..).zip(&cluster.nodes) {
            let (first, last) = (number * SLOTS / 3, (number + 1) * SLOTS / 3 - 1);
            ask(node, &["ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            cluster.introduce(node);
        }
        until("all slots are served", || cluster.nodes.iter().all(is_ok)).await;
        cluster
    }

    fn introduce(&self, node: &Server) {
        for other in &self.nodes {
            ask(node, &["MEET", "127.0.0.1", &other.port().to_string()]);
        }
    }

    /// Starts one more node, which follows the first of these.
    pub(crate) async fn replica(&self) -> Server {
        let (master, replica) = (&self.nodes[0], node());
        self.introduce(&replica);
        let name = ask(master, &["MYID"]);
        let knows_all = || ask(&replica, &["NODES"]).lines().count() == 4;
        until("the replica knows the nodes", || knows_all() && is_ok(&replica)).await;
        ask(&replica, &["REPLICATE", &name]);
        follows(master, &replica).await;
        // Whether it may take over is decided by the others, who have to have heard of it.
        let own = ask(&replica, &["MYID"]);
        let knows = |node: &Server| {
            ask(node, &["NODES"]).lines().any(|it| it.starts_with(&own) && it.contains("slave"))
        };
        until("the nodes know the replica", || self.nodes.iter().all(knows)).await;
        replica
    }

    /// The number of the node that serves a session.
    pub(crate) fn node_of(&self, session: &str) -> usize {
        let slot = ask(&self.nodes[1], &["KEYSLOT", &format!("{{{session}}}")]);
        usize::from(slot.parse::<u16>().unwrap() / (SLOTS / 3)).min(2)
    }
}

/// It notices at once when another one is gone, and takes over however old its data are.
fn node() -> Server {
    Server::with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "1000",
        "--cluster-replica-validity-factor",
        "0",
        "--appendonly",
        "yes",
    ])
}

fn is_ok(node: &Server) -> bool {
    ask(node, &["INFO"]).contains("cluster_state:ok")
}

/// Waits until a replica has what its master has now.
pub(crate) async fn follows(master: &Server, replica: &Server) {
    let offset = |node: &Server, name: &str| -> u64 {
        let info = replication(node);
        let found = info.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(':'));
        found.unwrap_or("0").trim().parse().unwrap()
    };
    let is_up = || replication(replica).contains("master_link_status:up");
    until("the replica follows", is_up).await;
    let now = offset(master, "master_repl_offset");
    until("the replica catches up", || offset(replica, "slave_repl_offset") >= now).await;
}

/// Whether the server is no replica, or none any more.
pub(crate) fn is_master(node: &Server) -> bool {
    replication(node).contains("role:master")
}

fn replication(node: &Server) -> String {
    redis::cmd("INFO").arg("replication").query(&mut node.corner().server()).unwrap()
}

/// What a node answers to a question about its cluster.
fn ask(node: &Server, words: &[&str]) -> String {
    let answer = redis::cmd("CLUSTER").arg(words).query(&mut node.corner().server()).unwrap();
    match answer {
        redis::Value::Int(number) => number.to_string(),
        other => redis::from_redis_value(other).unwrap(),
    }
}

/// Asks again and again.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
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
    let cluster = Cluster::start().await;
    let url = &cluster.nodes[1].url();
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
