//! Tests that the script matches the table.

use crate::agent::Report;
use crate::bodies::{Kind, Property, all, find};

#[test]
fn the_report_of_the_script_is_valid() {
    let report: Report = serde_json::from_value(super::report()).unwrap();
    assert_eq!(report.question, super::QUESTION);
}

#[test]
fn the_script_is_right() {
    let mercury = find("Mercury").unwrap();
    let above = |property| {
        let moons = all().iter().filter(|body| body.kind == Kind::Moon);
        let above = moons.filter(|moon| moon.value(property) > mercury.value(property));
        above.map(|moon| moon.name).collect::<Vec<_>>()
    };
    assert_eq!(above(Property::Radius), ["Ganymede", "Titan"]);
    assert_eq!(above(Property::Mass), Vec::<&str>::new());
}

#[test]
fn the_numbers_of_the_report_are_those_of_the_table() {
    let report: Report = serde_json::from_value(super::report()).unwrap();
    for fact in report.facts {
        let body = find(&fact.body).unwrap();
        let radius = format!("{} km", body.radius_km.unwrap());
        assert!(fact.statement.contains(&radius), "{}: {radius}", fact.statement);
        if fact.statement.contains("kg") {
            let mass = format!("{:e} kg", body.mass_kg.unwrap());
            assert!(fact.statement.contains(&mass), "{}: {mass}", fact.statement);
        }
    }
}
