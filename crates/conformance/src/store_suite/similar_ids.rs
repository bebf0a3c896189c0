//! Scenarios for ids that look alike but are different.

use std::sync::Arc;

use helix_agents_core::store::{
    Append, AppendOutcome, LeaseChange, NewSession, Page, SessionFilter, StateStore,
};

use super::StoreHarness;
use super::support::{LONG, Writer, first, id, log, root_session, run, running};
use crate::similar_ids::look_alikes;

/// Session ids keep their case, spaces, form of accents, and full length. Sessions with similar ids are read, listed
/// and deleted separately.
pub async fn sessions_whose_ids_look_alike_are_different(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let texts = look_alikes();
    for text in &texts {
        let session = id(text);
        let first = Append { body: text.clone().into(), ..first(&session, text) };
        Writer::create_as(&store, root_session(&session), first).await;
    }
    let mut left = texts.clone();
    left.sort();
    for text in &texts {
        let stored = log(&store, &id(text)).await;
        assert_eq!(stored.len(), 1, "{text:?}");
        assert_eq!(stored[0].body, text.as_bytes());
        let below = SessionFilter::new().root(id(text));
        assert_eq!(names(&store, &below).await, [text.as_str()]);
    }
    assert_eq!(names(&store, &SessionFilter::default()).await, left);
    for text in &texts {
        assert!(store.delete(&id(text)).await.unwrap(), "{text:?}");
        left.retain(|other| other != text);
        assert_eq!(names(&store, &SessionFilter::default()).await, left);
    }
}

async fn names(store: &Arc<dyn StateStore>, filter: &SessionFilter) -> Vec<String> {
    let heads = store.list(filter, &Page::default()).await.unwrap();
    let mut names: Vec<_> = heads.iter().map(|head| head.session.to_string()).collect();
    names.sort();
    names
}

/// The whole id of an append identifies a repetition and a position. An append with a similar id is a different append.
pub async fn appends_whose_ids_look_alike_are_different(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let texts = look_alikes();
    for (number, text) in texts.iter().enumerate() {
        let before = writer.position.clone();
        writer.add(text).await;
        // Another append with a similar id at the same position is not the same append.
        let other = Append { expected: before, ..writer.next(&texts[(number + 1) % texts.len()]) };
        let outcome = store.append(other).await.unwrap();
        assert!(matches!(outcome, AppendOutcome::Conflict { .. }), "{text:?}: {outcome:?}");
        // Nor does a similar id match the id of the position.
        let mut lost = writer.next("lost");
        lost.expected.append = texts[(number + 1) % texts.len()].as_str().into();
        assert_eq!(store.append(lost).await.unwrap(), AppendOutcome::HistoryLost, "{text:?}");
    }
    assert_eq!(writer.ids().await[1..], texts);
}

/// A renewal for a run with a similar id does not renew the lease. The filter by agent does not select an agent with a
/// similar name.
pub async fn runs_and_agents_whose_names_look_alike_are_different(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let texts = look_alikes();
    for (number, text) in texts.iter().enumerate() {
        let session = id(&format!("s{number}"));
        let new = NewSession { agent: text.as_str().into(), ..root_session(&session) };
        let first = Append {
            run: Some(run(text)),
            summary: Some(running(text)),
            lease: LeaseChange::Take(LONG),
            ..first(&session, "first")
        };
        Writer::create_as(&store, new, first).await;
    }
    for (number, text) in texts.iter().enumerate() {
        let session = format!("s{number}");
        for other in [text, &texts[(number + 1) % texts.len()]] {
            let renewal = store.renew(&id(&session), &run(other), LONG).await.unwrap();
            assert_eq!(renewal.renewed, other == text, "{other:?} is not {text:?}");
        }
        let filter = SessionFilter::new().agent(text.as_str());
        assert_eq!(names(&store, &filter).await, [session]);
    }
}
