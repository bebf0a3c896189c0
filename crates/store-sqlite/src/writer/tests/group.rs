//! The outcomes of operations that share a transaction.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::oneshot;

use helix_agents_core::error::{Error, ErrorCode, Result};

use super::{Durability, Scratch, code, hold, insert, release, rows, short_timeout};
use crate::error::Failure;
use crate::prepared::Tables;

fn refuse<T>() -> Result<T, Failure> {
    Err(Error::new(ErrorCode::SessionNotFound, "on purpose").into())
}

/// Adds the row `a` and counts how often that is done.
fn add_and_count(scratch: &Scratch, times: &Arc<AtomicUsize>) -> impl Future<Output = Result<()>> {
    let times = Arc::clone(times);
    scratch.run(move |tables| {
        times.fetch_add(1, Ordering::Relaxed);
        insert(tables.connection, "a")
    })
}

#[tokio::test]
async fn queued_operations_are_committed_together() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    let other = scratch.other();
    let looking = scratch.run(move |tables| Ok((rows(tables.connection), rows(&other))));
    let (a, b, seen, ()) =
        tokio::join!(scratch.add("a"), scratch.add("b"), looking, release(held, holding));
    assert_eq!((code(a), code(b)), (None, None));
    let (within, request_context) = seen.unwrap();
    assert_eq!(within, ["a", "b"]);
    assert!(request_context.is_empty(), "seen before the commit: {request_context:?}");
    assert_eq!(scratch.rows(), ["a", "b"]);
}

#[tokio::test]
async fn a_failing_or_panicking_operation_does_not_affect_others() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    let failing = scratch.run(|tables| {
        insert(tables.connection, "of the one that fails")?;
        refuse::<()>()
    });
    let panicking = scratch.run(|tables| -> Result<(), _> {
        insert(tables.connection, "of the one that panics")?;
        panic!("on purpose")
    });
    let (a, failed, b, panicked, c, ()) = tokio::join!(
        scratch.add("a"),
        failing,
        scratch.add("b"),
        panicking,
        scratch.add("c"),
        release(held, holding)
    );
    assert_eq!((code(a), code(b), code(c)), (None, None, None));
    assert_eq!(code(failed), Some(ErrorCode::SessionNotFound));
    assert_eq!(code(panicked), Some(ErrorCode::Internal));
    assert_eq!(scratch.rows(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_lone_operation_is_rolled_back_if_it_fails_or_panics() {
    let scratch = Scratch::new(|builder| builder).await;
    let failing = scratch.run(|tables| {
        insert(tables.connection, "of the one that fails")?;
        refuse::<()>()
    });
    assert_eq!(code(failing.await), Some(ErrorCode::SessionNotFound));
    let panicking = scratch.run(|tables| -> Result<(), _> {
        insert(tables.connection, "of the one that panics")?;
        panic!("on purpose")
    });
    assert_eq!(code(panicking.await), Some(ErrorCode::Internal));
    scratch.add("a").await.unwrap();
    assert_eq!(scratch.rows(), ["a"]);
}

#[tokio::test]
async fn others_are_written_although_one_fills_the_disk() {
    let scratch = Scratch::new(|builder| builder.max_pages(60)).await;
    let (held, holding) = hold(&scratch.writer).await;
    let times = Arc::default();
    let first = add_and_count(&scratch, &times);
    let filling = scratch.run(|tables| {
        let sql = "INSERT INTO scratch VALUES (randomblob(1000000))";
        Ok(tables.connection.execute_batch(sql)?)
    });
    let (first, full, last, ()) =
        tokio::join!(first, filling, scratch.add("b"), release(held, holding));
    assert_eq!((code(first), code(last)), (None, None));
    assert_eq!(code(full), Some(ErrorCode::StoreFull));
    assert_eq!(scratch.rows(), ["a", "b"]);
    // The first job ran again after the rollback.
    assert_eq!(times.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_failed_commit_is_reported_to_all() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    let breaking = scratch.run(|tables| {
        let sql = "INSERT INTO orphan VALUES ('missing')";
        Ok(tables.connection.execute_batch(sql)?)
    });
    let (a, broken, b, ()) =
        tokio::join!(scratch.add("a"), breaking, scratch.add("b"), release(held, holding));
    for result in [a, broken, b] {
        assert_eq!(code(result), Some(ErrorCode::StoreCorrupt));
    }
    scratch.add("c").await.unwrap();
    assert_eq!(scratch.rows(), ["c"]);
}

#[tokio::test]
async fn a_lock_of_another_process_is_reported_to_all() {
    let scratch = Scratch::new(short_timeout).await;
    let other = scratch.other();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // The first operation waits for the lock, and the others wait for the first.
    let results = join_all((0..5).map(|_| scratch.add("x"))).await;
    for result in results {
        assert_eq!(code(result), Some(ErrorCode::StoreBusy));
    }
    other.execute_batch("ROLLBACK").unwrap();
    scratch.add("a").await.unwrap();
    assert_eq!(scratch.rows(), ["a"]);
}

#[tokio::test]
async fn then_runs_only_after_the_commit() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    let (sender, receiver) = mpsc::channel();
    let write = |x: &'static str, fails: bool| {
        let (sender, other) = (sender.clone(), scratch.other());
        let work = move |tables: &mut Tables<'_>| {
            insert(tables.connection, x)?;
            if fails { refuse() } else { Ok(()) }
        };
        let then = move |_: &()| sender.send((x, rows(&other))).unwrap();
        scratch.writer.run(Durability::Process, work, then)
    };
    let (a, b, ()) = tokio::join!(write("a", false), write("b", false), release(held, holding));
    assert_eq!((code(a), code(b)), (None, None));
    assert_eq!(code(write("c", true).await), Some(ErrorCode::SessionNotFound));
    drop(sender);
    let both = || vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [("a", both()), ("b", both())]);
}

#[tokio::test]
async fn a_job_whose_caller_is_gone_is_not_started() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    assert!(scratch.add("gone").now_or_never().is_none(), "the writer is blocked");
    let (a, ()) = tokio::join!(scratch.add("a"), release(held, holding));
    a.unwrap();
    assert_eq!(scratch.rows(), ["a"]);
}

#[tokio::test]
async fn more_operations_than_fit_into_one_transaction_are_written() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    let many = join_all((0..200).map(|_| scratch.add("x")));
    let (results, ()) = tokio::join!(many, release(held, holding));
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(scratch.rows().len(), 200);
}

#[tokio::test]
async fn a_failure_without_changes_does_not_run_the_others_again() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    let times = Arc::default();
    let first = add_and_count(&scratch, &times);
    let failing = scratch.run(|_| refuse::<()>());
    let (first, failed, last, ()) =
        tokio::join!(first, failing, scratch.add("b"), release(held, holding));
    assert_eq!((code(first), code(last)), (None, None));
    assert_eq!(code(failed), Some(ErrorCode::SessionNotFound));
    assert_eq!(scratch.rows(), ["a", "b"]);
    assert_eq!(times.load(Ordering::Relaxed), 1);
}

/// The caller of the first job stops waiting while a later job of the group fails, so the first one
/// is rolled back and does not run again.
#[tokio::test]
async fn a_job_that_was_rolled_back_and_does_not_run_again_reports_nothing() {
    let scratch = Scratch::new(|builder| builder).await;
    let (held, holding) = hold(&scratch.writer).await;
    let (sender, receiver) = mpsc::channel();
    let work = |tables: &mut Tables<'_>| insert(tables.connection, "a");
    let first = scratch.writer.run(Durability::Process, work, move |&()| sender.send(()).unwrap());
    let mut first = Box::pin(first);
    assert!(first.as_mut().now_or_never().is_none(), "the writer is blocked");
    let (reached, has_reached) = oneshot::channel();
    let (proceed, may_proceed) = mpsc::channel::<()>();
    let mut reached = Some(reached);
    let failing = scratch.run(move |tables| {
        insert(tables.connection, "of the one that fails")?;
        if let Some(reached) = reached.take() {
            reached.send(()).unwrap();
        }
        // The receive fails when the sender is dropped.
        assert!(may_proceed.recv().is_err());
        refuse::<()>()
    });
    let stop_waiting = async {
        has_reached.await.unwrap();
        drop(first);
        drop(proceed);
    };
    let (failed, (), ()) = tokio::join!(failing, stop_waiting, release(held, holding));
    assert_eq!(code(failed), Some(ErrorCode::SessionNotFound));
    assert!(scratch.rows().is_empty());
    assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}
