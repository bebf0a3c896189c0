//! Tests of the data.

use super::*;

#[test]
fn every_line_of_the_file_is_read() {
    let lines = include_str!("../../data/solar-system.csv").lines().count() - 1;
    assert_eq!(all().len(), lines);
    assert!(all().iter().all(|body| body.parent != Parent::Any));
}

#[test]
fn no_two_bodies_share_a_name() {
    for body in all() {
        let named = all().iter().filter(|other| other.name == body.name);
        assert_eq!(named.count(), 1, "{}", body.name);
    }
}

#[test]
fn orbits_obey_keplers_third_law() {
    let constant = |body: &Body| {
        let (a, t) = (body.distance_km.unwrap(), body.period_days.unwrap());
        (a / 1e6).powi(3) / t.powi(2)
    };
    for body in all() {
        let siblings = || all().iter().filter(|other| other.parent == body.parent);
        let mean = siblings().map(constant).sum::<f64>() / siblings().count() as f64;
        let off = (constant(body) / mean - 1.0).abs();
        assert!(off < 0.025, "{} is off by {:.1} %", body.name, off * 100.0);
    }
}

#[test]
fn names_are_found_regardless_of_case() {
    assert_eq!(find(" tiTAN ").unwrap().parent, Parent::Saturn);
    assert_eq!(find("Vulcan"), None);
}
