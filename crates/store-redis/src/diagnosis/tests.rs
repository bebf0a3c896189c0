//! Tests of the findings about a server.

use helix_agents_core::error::Error;

use super::*;

fn inspection(persistence: Persistence, eviction: &str, max_memory: u64) -> Inspection {
    let settings = ServerSettings {
        version: "7.2.0".to_owned(),
        is_cluster: false,
        is_replica: false,
        eviction: eviction.to_owned(),
        max_memory,
        used_memory: 100,
        persistence,
        replicas: 0,
    };
    Inspection { settings, schema: Some(1), newest_schema: 1, sessions: 0, runs: 0 }
}

fn messages(inspected: Result<Inspection>) -> Vec<(String, bool)> {
    let findings = Diagnosis::new(inspected, 1).findings();
    findings
        .into_iter()
        .map(|finding| {
            let is_problem = finding.is_problem();
            (finding.message, is_problem)
        })
        .collect()
}

#[test]
fn a_durable_server_with_a_memory_limit_has_no_findings() {
    assert_eq!(messages(Ok(inspection(Persistence::Always, "noeviction", 1000))), []);
}

#[test]
fn settings_that_lose_appends_are_advice() {
    let found = messages(Ok(inspection(Persistence::Snapshots, "noeviction", 105)));
    let advice = |message: &str| (message.to_owned(), false);
    assert_eq!(
        found,
        [
            advice("a restart of the server loses all appends since its last snapshot"),
            advice("the server uses more than 90 % of its `maxmemory`"),
        ]
    );
}

#[test]
fn a_server_that_the_store_refuses_is_a_problem() {
    let evicts = messages(Ok(inspection(Persistence::Always, "allkeys-lru", 1000)));
    assert!(
        matches!(&evicts[..], [(message, true)] if message.contains("noeviction")),
        "{evicts:?}"
    );
    let mut newer = inspection(Persistence::Always, "noeviction", 1000);
    newer.schema = Some(3);
    assert!(matches!(&messages(Ok(newer))[..], [(_, true)]));
    let gone = Error::new(ErrorCode::StoreUnavailable, "the server is unreachable");
    assert_eq!(messages(Err(gone)), [("the server is unreachable".to_owned(), true)]);
}

#[test]
fn settings_are_serialized_with_the_contents() {
    let json = serde_json::to_value(inspection(Persistence::Always, "noeviction", 0)).unwrap();
    assert_eq!(
        (&json["persistence"], &json["cluster"]),
        (&"appendfsync always".into(), &false.into())
    );
    assert_eq!(json["newest_schema"], 1);
}
