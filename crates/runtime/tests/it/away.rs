//! The delay that unavailable streams cause, in virtual time, in which only waiting takes time.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_conformance::runtime_suite::stream_outages::UnavailableStreams;
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_core::store::{SessionFilter, StateStore, list_all};
use helix_agents_runtime::Settings;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::trees::Redelivery;
use tokio::time::Instant;

use crate::by_hand::{S, boss, boss_model, helper};
use crate::in_work_items::in_work_items;

/// Returns the number of appends of all sessions.
async fn appends(store: &MemoryStore) -> u32 {
    let mut appends = 0;
    for head in list_all(store, &SessionFilter::default()).await.unwrap() {
        appends += store.read_log(&head.session, 0, u32::MAX).await.unwrap().len();
    }
    appends.try_into().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_append_waits_a_second_at_most_or_an_eighth_of_a_shorter_lease() {
    for (lease, limit) in [(60_000, 1_000), (2_000, 250)] {
        for streams in [UnavailableStreams::Refusing, UnavailableStreams::Silent] {
            let store = MemoryStore::new();
            let registry = AgentRegistry::default();
            registry.replace_erased(boss());
            registry.replace_erased(helper());
            let settings = Settings {
                store: Some(Arc::new(store.clone())),
                streams: Some(Arc::new(streams)),
                llm: Some(Arc::new(boss_model())),
                registry,
                lease: Duration::from_millis(lease),
                ..Settings::default()
            };
            let runtime = in_work_items(settings, Redelivery::Never);
            let started = Instant::now();
            let options = ExecuteOptions::default().session(S);
            let handle = runtime.execute(boss(), "go".into(), options).await.unwrap();
            let ended = handle.result().await.unwrap();
            assert_eq!(ended.status, RunStatus::Completed, "{ended:?}");
            let most = Duration::from_millis(limit) * appends(&store).await;
            let took = started.elapsed();
            assert!(
                took <= most,
                "{streams:?} at a lease of {lease} ms took {took:?}, not {most:?}"
            );
        }
    }
}
