//! Tests of the findings about a database.

use helix_agents_core::error::Error;
use helix_agents_core::store::SessionCounts;

use super::*;
use crate::guarantees::{self, Settings};

fn inspection(fsync: bool, stopped: u64) -> Inspection {
    let settings = Settings { fsync, synchronous_commit: "on".to_owned() };
    Inspection {
        server: "17.0".to_owned(),
        schema: 4,
        newest_schema: 4,
        guarantees: guarantees::of(&settings),
        fsync,
        synchronous_commit: settings.synchronous_commit,
        bytes: 8192,
        sessions: SessionCounts { stopped, ..SessionCounts::default() },
        chunks: 0,
    }
}

fn codes(inspected: Result<Option<Inspection>>) -> Vec<(String, bool)> {
    let findings = Diagnosis::new(inspected, 1).findings();
    findings.into_iter().map(|finding| (finding.code.to_string(), finding.is_problem())).collect()
}

#[test]
fn a_durable_server_has_no_findings() {
    assert_eq!(codes(Ok(Some(inspection(true, 0)))), []);
    assert_eq!(codes(Ok(None)), []);
}

#[test]
fn settings_that_lose_events_and_stopped_sessions_are_advice() {
    let advice = |code: &str| (code.to_owned(), false);
    assert_eq!(
        codes(Ok(Some(inspection(false, 1)))),
        [advice("server_not_durable"), advice("session_stopped")]
    );
}

#[test]
fn an_unavailable_server_is_a_problem() {
    let error = Error::new(ErrorCode::StoreUnavailable, "the server is unreachable");
    assert_eq!(codes(Err(error)), [("store_unavailable".to_owned(), true)]);
}
