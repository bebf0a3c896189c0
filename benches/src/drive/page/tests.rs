//! Tables on the performance page.

use super::super::counter::Counter;
use super::*;

#[test]
fn only_the_table_of_a_measured_group_changes() {
    let mut report = Report::new(Counter::None);
    report.add("pgbench.steps.100", "ours", 40.0, "steps/s").at_least(50.0);
    report.add("pgbench.steps.100", "theirs", 1000.4, "steps/s").compared_with(500.2);
    report.add("cold.wall", "ours", 1.0, "ms");
    let page =
        "a\n<!-- begin: written by `cargo xtask bench pgbench --write` -->\nold\n<!-- end -->\nb\n";
    let peers = Peers::load().unwrap();
    let page = with_tables(page.to_owned(), &["cold", "pgbench"], &report, &peers);
    assert_eq!(
        page,
        "a\n<!-- begin: written by `cargo xtask bench pgbench --write` -->\n\
         | | ours | theirs | aim | others |\n\
         |---|---|---|---|---|\n\
         | steps.100, steps/s | **40.0 ✗** | 1,000 (2.00 ×) | ≥ 50 steps/s | DBOS 65, langgraph 30 |\n\
         <!-- end -->\nb\n"
    );
}
