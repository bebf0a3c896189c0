//! Scenarios for leases and guards, judged by the store's clock.
//!
//! A lease with a duration of zero expires at once, so no scenario has to wait.

use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::store::{
    Append, AppendOutcome, Guard, Head, LeaseChange, Page, SessionFilter,
};

use super::StoreHarness;
use super::support::{LONG, Writer, idle, ids, missed, run, running, with_fixed_read_time};

/// Creates a session whose current run is `r`, with a lease of the given duration.
async fn with_run(harness: &impl StoreHarness, ttl: Duration) -> Writer {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let start = Append {
        run: Some(run("r")),
        summary: Some(running("r")),
        lease: LeaseChange::Take(ttl),
        ..writer.next("start")
    };
    writer.take(start).await;
    writer
}

/// Returns the append that starts another run.
fn takeover(writer: &Writer) -> Append {
    Append {
        run: Some(run("r2")),
        summary: Some(running("r2")),
        lease: LeaseChange::Take(LONG),
        guard: Guard::LeaseFree,
        ..writer.next("takeover")
    }
}

async fn takes_over(writer: &mut Writer) {
    let start = takeover(writer);
    let at = writer.take(start).await;
    let head = writer.head().await;
    assert_eq!((head.lease_until, head.summary), (Some(at.after(LONG)), running("r2")));
}

/// Asserts that the append fails its guard and changes nothing.
async fn fails_its_guard(writer: &Writer, append: Append) -> (Option<Timestamp>, Timestamp) {
    let before = (writer.head().await, writer.ids().await);
    let outcome = writer.store.append(append).await.unwrap();
    let AppendOutcome::GuardFailed { lease_until, now } = outcome else {
        panic!("the guard held: {outcome:?}")
    };
    assert_eq!((writer.head().await, writer.ids().await), before);
    (lease_until, now)
}

/// An append can take, keep or clear the lease. The expiry of a lease counts from the time of the
/// append, by the store's clock.
pub async fn a_lease_is_taken_kept_and_cleared(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, LONG).await;
    let taken = writer.head().await;
    assert_eq!(taken.lease_until, Some(taken.updated_at.after(LONG)));
    writer.add("request").await;
    assert_eq!(writer.head().await.lease_until, taken.lease_until);
    let again = Append { lease: LeaseChange::Take(2 * LONG), ..writer.next("again") };
    let at = writer.take(again).await;
    assert_eq!(writer.head().await.lease_until, Some(at.after(2 * LONG)));
    let end = Append { summary: Some(idle()), lease: LeaseChange::Clear, ..writer.next("end") };
    writer.take(end).await;
    assert_eq!(writer.head().await.lease_until, None);
}

/// An append with the guard `LeaseFree` fails while another run holds the lease, and its outcome
/// contains the lease expiry. Appends without the guard are accepted.
pub async fn a_lease_that_is_held_keeps_others_out(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, LONG).await;
    let held = writer.head().await.lease_until;
    let (lease_until, now) = fails_its_guard(&writer, takeover(&writer)).await;
    assert_eq!(lease_until, held);
    assert!(now < held.unwrap());
    writer.add("request").await;
    fails_its_guard(&writer, takeover(&writer)).await;
}

/// A lease ends exactly at its expiry. Another run can then take it.
pub async fn an_expired_lease_excludes_no_other_run(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, Duration::ZERO).await;
    let head = writer.head().await;
    assert_eq!(head.lease_until, Some(head.updated_at));
    takes_over(&mut writer).await;
}

/// Another run can take a lease that was cleared, even if the run that held it did not end.
pub async fn a_released_lease_excludes_no_other_run(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, LONG).await;
    let clear = Append { lease: LeaseChange::Clear, ..writer.next("clear") };
    writer.take(clear).await;
    takes_over(&mut writer).await;
}

/// An append with the guard `NotAfter` is accepted before its deadline. After the deadline, the
/// guard fails and nothing is written.
pub async fn an_append_after_its_deadline_is_not_taken(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, LONG).await;
    let at = writer.head().await.updated_at;
    let late = Append { guard: Guard::NotAfter(Timestamp(at.0 - 1)), ..writer.next("late") };
    let (lease_until, now) = fails_its_guard(&writer, late).await;
    assert_eq!(lease_until, None, "no lease is in the way");
    assert!(now >= at);

    let early = Append { guard: Guard::NotAfter(now.after(LONG)), ..writer.next("early") };
    writer.take(early).await;
    assert_eq!(ids(&writer.log().await), ["first", "start", "early"]);
}

/// An append with a stale position and a failing guard is a conflict, because the writer must read
/// the missed appends before the guard is relevant.
pub async fn a_stale_position_is_a_conflict_even_if_the_guard_fails_too(
    harness: &impl StoreHarness,
) {
    let mut writer = with_run(harness, LONG).await;
    let stale = takeover(&writer);
    writer.add("a").await;
    let outcome = writer.store.append(stale).await.unwrap();
    assert_eq!(ids(&missed(outcome)), ["a"]);
}

/// Renewing the lease of the current run extends it. A renewal is not an append: the log and the
/// rest of the head do not change.
pub async fn renewing_extends_the_lease_of_the_current_run_and_nothing_else(
    harness: &impl StoreHarness,
) {
    let writer = with_run(harness, LONG).await;
    let before = writer.head().await;
    let renewal = writer.store.renew(&writer.session, &run("r"), 2 * LONG).await.unwrap();
    assert!(renewal.renewed);
    assert!(renewal.head.lease_until >= Some(before.updated_at.after(2 * LONG)));
    assert_eq!(writer.head().await, with_fixed_read_time(renewal.head.clone()));
    let expected = Head { lease_until: renewal.head.lease_until, ..before };
    assert_eq!(with_fixed_read_time(renewal.head), expected);
    assert_eq!(ids(&writer.log().await), ["first", "start"]);
}

/// A renewal for a run that is not the current run changes nothing. It reports that the lease was
/// not renewed, so a superseded owner can stop.
pub async fn renewing_for_another_run_changes_nothing(harness: &impl StoreHarness) {
    let writer = with_run(harness, LONG).await;
    let before = writer.head().await;
    let renewal = writer.store.renew(&writer.session, &run("r0"), 2 * LONG).await.unwrap();
    assert_eq!((renewal.renewed, with_fixed_read_time(renewal.head)), (false, before.clone()));
    assert_eq!(writer.head().await, before);
}

/// A renewal changes nothing if the session has no current run. An owner whose run was ended by
/// another process learns that its lease was not renewed.
pub async fn renewing_without_a_current_run_changes_nothing(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, LONG).await;
    let end = Append { summary: Some(idle()), lease: LeaseChange::Clear, ..writer.next("end") };
    writer.take(end).await;
    let before = writer.head().await;
    let renewal = writer.store.renew(&writer.session, &run("r"), LONG).await.unwrap();
    assert_eq!((renewal.renewed, with_fixed_read_time(renewal.head)), (false, before.clone()));
    assert_eq!(writer.head().await, before);
}

/// The heads that `head`, `list` and `renew` return contain the time at which the store read them.
/// A caller can determine whether the lease is held without a clock of its own.
pub async fn a_head_contains_the_time_when_it_was_read(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, LONG).await;
    let heads = async |writer: &Writer| {
        let store = &writer.store;
        let read = store.head(&writer.session).await.unwrap().unwrap();
        let listed = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
        [read, listed[0].clone()]
    };
    let held = heads(&writer).await;
    assert!(
        held.iter().all(|head| head.read_at >= head.updated_at && head.is_leased()),
        "{held:?}"
    );
    let again = Append { lease: LeaseChange::Take(Duration::ZERO), ..writer.next("again") };
    writer.take(again).await;
    let expired = heads(&writer).await;
    assert!(
        expired.iter().all(|head| head.read_at >= head.updated_at && !head.is_leased()),
        "{expired:?}"
    );
    let renewal = writer.store.renew(&writer.session, &run("r"), LONG).await.unwrap();
    assert!(renewal.head.is_leased());
    assert_eq!(renewal.head.lease_until, Some(renewal.head.read_at.after(LONG)));
}

/// A renewal replaces the lease expiry and can shorten the lease. A duration of zero releases the
/// lease.
pub async fn a_renewal_may_shorten_the_lease(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, 2 * LONG).await;
    for length in [LONG, Duration::from_millis(3), Duration::ZERO] {
        let renewal = writer.store.renew(&writer.session, &run("r"), length).await.unwrap();
        assert!(renewal.renewed);
        assert_eq!(renewal.head.lease_until, Some(renewal.head.read_at.after(length)));
        assert_eq!(writer.head().await.lease_until, renewal.head.lease_until);
    }
    takes_over(&mut writer).await;
}

/// A lease does not depend on the summary: it is held even if the summary names no run.
pub async fn a_lease_stays_until_it_is_released_regardless_of_the_summary(
    harness: &impl StoreHarness,
) {
    let mut writer = with_run(harness, LONG).await;
    let held = writer.head().await.lease_until;
    let ended = Append { summary: Some(idle()), ..writer.next("ended") };
    writer.take(ended).await;
    let head = writer.head().await;
    assert_eq!((head.summary.run, head.lease_until), (None, held));
    fails_its_guard(&writer, takeover(&writer)).await;
}

/// The current run can renew an expired lease that no other run has taken. The renewed lease keeps
/// other runs out again.
pub async fn an_expired_lease_can_be_renewed(harness: &impl StoreHarness) {
    let writer = with_run(harness, Duration::ZERO).await;
    let renewal = writer.store.renew(&writer.session, &run("r"), LONG).await.unwrap();
    assert!(renewal.renewed);
    fails_its_guard(&writer, takeover(&writer)).await;
}

/// A renewal returns a head that includes the appends of other handles. An owner learns of abort
/// requests from this head.
pub async fn a_renewal_returns_requests_from_other_processes(harness: &impl StoreHarness) {
    let mut writer = with_run(harness, LONG).await;
    writer.store = harness.open().await;
    writer.add("request").await;
    let owner = harness.open().await;
    let renewal = owner.renew(&writer.session, &run("r"), LONG).await.unwrap();
    assert_eq!(renewal.head.position, writer.position);
}
