//! The guide describes all log events.

use super::LOG_EVENTS;

/// Returns the words between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Returns the name, the levels and the fields of each event in the guide.
fn described(guide: &str) -> Vec<String> {
    let (_, section) = guide.split_once("\n## Log events\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let table = section.split("| event |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let description = |row: &str| {
        let cells: Vec<_> = row.split('|').map(quoted).collect();
        format!("{:?} {:?} {:?}", cells[1], cells[2], cells[4])
    };
    rows.map(description).collect()
}

#[test]
fn the_guide_lists_all_log_events() {
    let of_code = LOG_EVENTS.iter().map(|event| {
        let levels: Vec<_> =
            event.levels.iter().map(|level| level.as_str().to_lowercase()).collect();
        format!("{:?} {levels:?} {:?}", [event.name], event.fields)
    });
    let guide = include_str!("../../../../../docs/src/telemetry.md");
    assert_eq!(described(guide), of_code.collect::<Vec<_>>());
}
