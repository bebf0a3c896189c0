//! Counts of what is in progress.

use super::Permits;

#[test]
fn both_limits_apply_and_a_dropped_permit_returns() {
    let permits = Permits::new(2, 3);
    let first = permits.acquire("ann").unwrap();
    let second = permits.acquire("ann").unwrap();
    assert!(permits.acquire("ann").is_none(), "the limit of one principal");
    let third = permits.acquire("bob").unwrap();
    assert!(permits.acquire("bob").is_none(), "the limit of all principals");
    drop(first);
    let fourth = permits.acquire("bob").unwrap();
    drop((second, third, fourth));
    assert_eq!(permits.lock().in_all, 0);
    assert!(permits.lock().by_principal.is_empty());
}
