//! Tests of the findings about a file.

use std::path::PathBuf;

use helix_agents_core::store::SessionCounts;

use super::*;
use crate::Synchronous;

fn healthy() -> Diagnosis {
    Diagnosis {
        path: "/data/agents.db".into(),
        exists: true,
        error: None,
        file: Some(Inspection {
            schema: 6,
            newest_schema: 6,
            journal_mode: "wal".to_owned(),
            writable: true,
            bytes: 4096,
            sessions: SessionCounts::default(),
            runtimes: vec![LOCAL.to_owned()],
            chunks: 0,
        }),
        folder: Folder {
            path: "/data".into(),
            exists: true,
            writable: true,
            free_bytes: Some(LOW_DISK_SPACE),
            network_file_system: None,
        },
        stream_retention: 1,
        guarantees: guarantees::of(Synchronous::Full),
    }
}

#[track_caller]
fn codes(diagnosis: &Diagnosis) -> Vec<String> {
    let findings = diagnosis.findings();
    for finding in &findings {
        assert!(!finding.message.is_empty() && !finding.remedy.is_empty(), "{finding:?}");
        assert_eq!(
            finding.is_problem(),
            finding.code.starts_with("store_") || finding.code == "config_invalid"
        );
    }
    findings.into_iter().map(|finding| finding.code.into_owned()).collect()
}

#[test]
fn a_healthy_file_has_no_findings() {
    assert_eq!(codes(&healthy()), [] as [&str; 0]);
}

#[test]
fn a_file_that_cannot_be_opened_is_a_problem() {
    let error = helix_agents_core::error::Error::new(ErrorCode::StoreForeign, "not ours").record();
    let diagnosis = Diagnosis { error: Some(error), file: None, ..healthy() };
    assert_eq!(codes(&diagnosis), ["store_foreign"]);
    let [finding] = &diagnosis.findings()[..] else { panic!("one finding") };
    assert_eq!(finding.message, "/data/agents.db: not ours");
}

#[test]
fn an_unusable_folder_is_a_problem() {
    let mut diagnosis = Diagnosis { file: None, ..healthy() };
    diagnosis.folder.writable = false;
    assert_eq!(codes(&diagnosis), ["store_read_only"]);
    diagnosis.folder.exists = false;
    diagnosis.folder.free_bytes = None;
    assert_eq!(codes(&diagnosis), ["config_invalid"]);
}

#[test]
fn risks_of_the_disk_and_sessions_that_need_attention_are_advice() {
    let mut diagnosis = healthy();
    diagnosis.folder.network_file_system = Some("NFS");
    diagnosis.folder.free_bytes = Some(LOW_DISK_SPACE - 1);
    let file = diagnosis.file.as_mut().unwrap();
    file.sessions.stopped = 2;
    file.runtimes = vec!["local".to_owned(), "temporal".to_owned()];
    assert_eq!(
        codes(&diagnosis),
        ["network_file_system", "disk_nearly_full", "session_stopped", "engine_on_one_machine"]
    );
}

#[test]
fn a_file_that_is_not_writable_is_a_problem() {
    let mut diagnosis = healthy();
    diagnosis.path = PathBuf::from("/data/archive.db");
    diagnosis.file.as_mut().unwrap().writable = false;
    assert_eq!(codes(&diagnosis), ["store_read_only"]);
    assert!(diagnosis.findings()[0].message.starts_with("/data/archive.db: "));
}
