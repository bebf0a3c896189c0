//! Simulations in the normal test run: the stories that failed once.

use helix_agents_tests_sim::{Fault, Story, parse_known, try_out};

#[test]
fn stories_that_failed_once_succeed() {
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
fn a_story_without_faults_ends() {
    let (mut lines, mut events) = (0, 0);
    for seed in 5_000..5_020 {
        let faults = Fault::ALL.into_iter();
        let calm = faults.fold(Story::new(seed), |story, fault| story.without(fault));
        let outcome = calm.run_with_trace();
        assert_eq!(outcome.problems, Vec::<String>::new(), "seed {seed}");
        lines += outcome.lines.len();
        events += outcome.stats.events;
    }
    assert!(lines > 1_000 && events > 200, "{lines} lines, {events} events");
}

#[test]
fn a_story_is_parsed_from_its_text() {
    for seed in 0..200 {
        let mut simpler = Story::new(seed).without(Fault::Stalls);
        simpler.moves -= 1;
        for story in [Story::new(seed), simpler] {
            assert_eq!(Story::parse(&story.to_string()), Ok(story));
        }
    }
}
