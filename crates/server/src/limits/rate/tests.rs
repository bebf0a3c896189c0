//! Rates, with a paused clock.

use std::time::Duration;

use super::RateLimiter;
use crate::limits::Rate;

#[test]
fn a_burst_is_followed_by_the_rate() {
    let limiter = RateLimiter::new(Rate::new(60, 3));
    let now = Duration::from_secs(100);
    for _ in 0..3 {
        assert_eq!(limiter.check("ann", now), Ok(()));
    }
    assert_eq!(limiter.check("ann", now), Err(Duration::from_secs(1)));
    assert_eq!(limiter.check("bob", now), Ok(()));
    let later = now + Duration::from_secs(1);
    assert_eq!(limiter.check("ann", later), Ok(()));
    assert_eq!(limiter.check("ann", later), Err(Duration::from_secs(1)));
}

#[test]
fn idle_principals_are_forgotten() {
    let limiter = RateLimiter::new(Rate::new(60, 1));
    for index in 0..1000 {
        limiter.check(&index.to_string(), Duration::ZERO).unwrap();
    }
    for seconds in [1, 2] {
        limiter.check("ann", Duration::from_secs(seconds)).unwrap();
    }
    let used = limiter.used.lock().unwrap();
    assert_eq!((used.present.len(), used.previous.len()), (1, 1));
}

#[test]
fn an_allowance_that_is_used_up_survives_a_new_generation() {
    let limiter = RateLimiter::new(Rate::new(60, 2));
    // The window is two seconds, and the second request is at the end of the first generation.
    let at = |millis| Duration::from_millis(millis);
    assert_eq!(limiter.check("bob", at(2_000)), Ok(()));
    for millis in [3_900, 3_900] {
        assert_eq!(limiter.check("ann", at(millis)), Ok(()));
    }
    assert_eq!(limiter.check("bob", at(4_000)), Ok(()));
    assert_eq!(limiter.check("ann", at(4_000)), Err(at(900)));
}
