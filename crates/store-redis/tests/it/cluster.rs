//! A cluster of three nodes over which sessions and indexes are distributed.

use std::time::{Duration, Instant};

use helix_agents_conformance::{store_suite as state, stream_suite as stream};

use super::server::Server;
use super::support::Keyspace;

const SLOTS: u16 = 16_384;

/// A cluster whose nodes serve equal shares of the slots, in order.
pub(crate) struct Cluster {
    pub(crate) nodes: [Server; 3],
}

impl Cluster {
    /// Starts the nodes, connects them, and waits until all slots are served.
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

    /// Starts a replica of the first node.
    pub(crate) async fn replica(&self) -> Server {
        let (master, replica) = (&self.nodes[0], node());
        self.introduce(&replica);
        let name = ask(master, &["MYID"]);
        let knows_all = || ask(&replica, &["NODES"]).lines().count() == 4;
        until("the replica knows the nodes", || knows_all() && is_ok(&replica)).await;
        ask(&replica, &["REPLICATE", &name]);
        follows(master, &replica).await;
        // The other nodes decide whether the replica may take over, so they must know it.
        let own = ask(&replica, &["MYID"]);
        let knows = |node: &Server| {
            ask(node, &["NODES"])
                .lines()
                .any(|line| line.starts_with(&own) && line.contains("slave"))
        };
        until("the nodes know the replica", || self.nodes.iter().all(knows)).await;
        replica
    }

    /// Returns the number of the node that serves a session.
    pub(crate) fn node_of(&self, session: &str) -> usize {
        let slot = ask(&self.nodes[1], &["KEYSLOT", &format!("{{{session}}}")]);
        usize::from(slot.parse::<u16>().unwrap() / (SLOTS / 3)).min(2)
    }
}

/// Starts a node. It detects failures quickly, and takes over however old its data are.
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

/// Waits until a replica has received the current data of its master.
pub(crate) async fn follows(master: &Server, replica: &Server) {
    let offset = |node: &Server, name: &str| -> u64 {
        let info = replication(node);
        let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.unwrap_or("0").trim().parse().unwrap()
    };
    let is_up = || replication(replica).contains("master_link_status:up");
    until("the replica follows", is_up).await;
    let now = offset(master, "master_repl_offset");
    until("the replica catches up", || offset(replica, "slave_repl_offset") >= now).await;
}

/// Returns `true` if the server is not a replica (any more).
pub(crate) fn is_master(node: &Server) -> bool {
    replication(node).contains("role:master")
}

fn replication(node: &Server) -> String {
    redis::cmd("INFO").arg("replication").query(&mut node.keyspace().server()).unwrap()
}

/// Runs a `CLUSTER` command on a node.
fn ask(node: &Server, words: &[&str]) -> String {
    let answer = redis::cmd("CLUSTER").arg(words).query(&mut node.keyspace().server()).unwrap();
    match answer {
        redis::Value::Int(number) => number.to_string(),
        other => redis::from_redis_value(other).unwrap(),
    }
}

/// Polls until the condition holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Runs tests of the suites on the cluster, each with its own prefix.
macro_rules! all_of {
    ($url:expr, $suite:ident: $($name:ident),+ $(,)?) => {
        $(
            println!(stringify!($name));
            $suite::$name(&Keyspace::at($url)).await;
        )+
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_fulfills_the_contracts() {
    let cluster = Cluster::start().await;
    let url = &cluster.nodes[1].url();
    all_of! { url, state:
        a_created_session_reads_back_as_it_was_created,
        a_conflict_brings_exactly_the_missed_appends,
        a_repeated_append_is_answered_even_after_later_appends,
        racing_creators_have_exactly_one_winner,
        a_deletion_leaves_no_child_that_is_created_concurrently,
        racing_appends_have_exactly_one_winner,
        sessions_do_not_disturb_each_other,
        a_lease_that_is_held_keeps_others_out,
        sessions_are_listed_newest_first,
        each_filter_selects_alone,
        sessions_are_listed_by_a_tag,
        all_tags_of_a_filter_hold_together,
        tags_hold_together_with_other_conditions,
        a_list_by_tag_can_be_read_in_pages,
        tags_go_with_their_session,
        a_fork_has_tags_of_its_own,
        a_session_and_its_tags_become_visible_together,
        tags_are_any_text,
        a_run_with_an_expired_lease_is_listed_as_expired,
        a_session_is_due_once_its_wake_up_time_has_passed,
        deleting_takes_the_children_along,
        positions_of_a_fork_are_judged_like_any_others,
        a_fork_can_be_read_across_the_seam,
        forks_can_be_forked,
        racing_forks_have_exactly_one_winner,
        shared_appends_survive_the_original,
        deleting_a_fork_leaves_the_original,
        ids_are_any_text,
    }
    all_of! { url, stream:
        a_batch_is_written_in_its_order,
        a_reader_follows_what_another_handle_writes,
        beginning_again_discards_the_earlier_attempt_and_announces_it,
        a_watermark_announces_attempts_and_then_writes_its_boundaries,
        a_reader_behind_the_trimmed_end_gets_one_resync_and_then_the_rest,
        a_reader_continues_after_a_reset,
    }
}
