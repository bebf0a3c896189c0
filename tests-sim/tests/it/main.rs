//! Simulations in the normal run of tests: the stories that failed once, and some fresh ones.

use std::time::Duration;

use helix_agents_tests_sim::{Fault, Plan, Story, parse_known, tell_many, try_out};

/// How many fresh stories are told.
const FRESH: u64 = 100;

/// Faults that `cargo xtask sim` has and these stories do not, because they still find bugs that are
/// known: owners that lose their lease to slow hooks and to streams that are away.
const LATER: &[Fault] = &[Fault::Slow, Fault::Late, Fault::Streams];

#[test]
fn stories_that_failed_once_hold() {
    let mut problems = Vec::new();
    for story in parse_known(include_str!("../../known.txt")).unwrap() {
        let found = try_out(story, false).problems;
        if !found.is_empty() {
            problems.push(format!("--story \"{story}\"\n{}", found.join("\n")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn whatever_befalls_processes_every_tree_ends_and_its_logs_agree() {
    let plan = Plan { first: 0, stories: FRESH, time: Duration::MAX, without: LATER.to_vec() };
    let report = tell_many(&plan);
    println!("{} stories, {:.0} in a second\n{}", report.stories, report.pace(), report.marks);
    let failed = report.failed.iter().map(|it| format!("--story \"{}\"\n{}", it.story, it.problem));
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn a_story_told_twice_happens_twice() {
    for seed in 0..20 {
        let (one, other) = (Story::new(seed).tell_as_text(), Story::new(seed).tell());
        assert!(one.lines.len() > 10);
        assert_eq!(one.hash, other.hash, "seed {seed}");
    }
}

#[test]
fn a_story_is_read_as_it_is_written() {
    for seed in 0..200 {
        let mut simpler = Story::new(seed).without(Fault::Stalls);
        simpler.moves -= 1;
        for story in [Story::new(seed), simpler] {
            assert_eq!(Story::parse(&story.to_string()), Ok(story));
        }
    }
}
