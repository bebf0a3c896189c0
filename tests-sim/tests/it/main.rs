//! Simulations in the normal run of tests: the stories that failed once.

use helix_agents_core::clock::Clock as _;
use helix_agents_runtime::TokioClock;
use helix_agents_tests_sim::{Fault, Plan, Story, parse_known, tell_many, try_out};

/// How many stories of the day are told.
const OF_THE_DAY: u64 = 300;

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

/// Each day others, so that what one day finds is told again by its seed. One in fifteen is told twice: the same
/// has to happen.
#[test]
fn stories_of_the_day_hold() {
    let day = u64::try_from(TokioClock::new().now().0 / 86_400_000).unwrap();
    let first = day << 20;
    let plan = Plan { first, stories: OF_THE_DAY, twice: 15, ..Plan::default() };
    let report = tell_many(&plan);
    let problems: Vec<_> = report
        .failed
        .iter()
        .map(|failure| format!("--story \"{}\"\n{}", failure.story, failure.problem))
        .collect();
    assert!(problems.is_empty(), "seeds from {first}\n{}", problems.join("\n\n"));
}

#[test]
fn a_story_happens_and_comes_to_its_end() {
    let faults = Fault::ALL.into_iter();
    let calm = faults.fold(Story::new(7), |story, fault| story.without(fault));
    let told = calm.tell_as_text();
    assert_eq!(told.problems, Vec::<String>::new());
    assert!(told.lines.len() > 50 && told.tally.events > 10, "{:?}", told.tally);
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
