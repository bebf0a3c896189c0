//! Comparing the replies of all cases with their meanings.

use anyhow::Result;

use crate::case::Case;
use crate::variant::Variant;
use crate::{compare, play, replay};

#[derive(Default)]
struct Totals {
    replies: usize,
    plays: usize,
    values: usize,
    differences: usize,
    skipped: usize,
}

/// Plays all replies in all variants, prints the differences, and returns their number.
pub(crate) async fn play_all(cases: &[Case]) -> Result<usize> {
    let mut totals = Totals::default();
    for case in cases {
        play_case(case, &mut totals).await?;
    }
    println!(
        "{} replies in {} variants and {} values sent back: {} differences; {} replies of APIs without an adapter",
        totals.replies, totals.plays, totals.values, totals.differences, totals.skipped
    );
    Ok(totals.differences)
}

async fn play_case(case: &Case, totals: &mut Totals) -> Result<()> {
    for (number, exchange) in case.exchanges.iter().enumerate() {
        let Some(format) = play::format(&exchange.api) else {
            totals.skipped += 1;
            continue;
        };
        totals.replies += 1;
        if let Some(replay) = replay::compare(case, number).await? {
            totals.values += replay.values;
            if let Some(missing) = replay.missing {
                totals.differences += 1;
                println!("{}[{number}]: {missing}", case.name);
            }
        }
        for variant in Variant::all(exchange) {
            totals.plays += 1;
            let response = play::play(&format, exchange, &variant).await?;
            for difference in compare::differences(&response, &exchange.expected) {
                totals.differences += 1;
                println!("{}[{number}] {variant}: {difference}", case.name);
            }
        }
    }
    Ok(())
}
