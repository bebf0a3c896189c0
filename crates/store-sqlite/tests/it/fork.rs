//! The file size cost of forks, and the migration of files from before forks.

use helix_agents_core::store::{
    Append, ForkOutcome, NewSession, Page, Position, SessionFilter, SessionUsage, StateStore as _,
};

use crate::support::{Folder, append, create, id};

fn rows(folder: &Folder, table: &str) -> u32 {
    let sql = format!("SELECT count(*) FROM {table}");
    folder.sql().query_row(&sql, [], |row| row.get(0)).unwrap()
}

/// A fork does not copy the history, whatever its length. The history is deleted with the last
/// session that shares it, up to the version that this session shares.
#[tokio::test]
async fn a_fork_adds_one_row_and_its_history_is_deleted_with_the_last_session_that_shares_it() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut position = create(&store, &id("s")).await;
    for index in 0..20 {
        let name = format!("a{index}");
        store.append(append(&id("s"), &position, &name)).await.unwrap();
        position = Position { version: position.version + 1, append: name.as_str().into() };
    }
    let summary = store.head(&id("s")).await.unwrap().unwrap().summary;
    let fork = async |from: &str, session: &str, position: Position| {
        let new = NewSession {
            agent: "agent".into(),
            root: id(session),
            parent: None,
            tags: std::collections::BTreeMap::new(),
        };
        let first =
            Append { summary: Some(summary.clone()), ..append(&id(session), &position, session) };
        let outcome = store.fork(&id(from), new, first).await.unwrap();
        assert!(matches!(outcome, ForkOutcome::Created { .. }), "{outcome:?}");
    };
    let before = rows(&folder, "appends");
    fork("s", "one", Position { version: 10, append: "a8".into() }).await;
    fork("one", "two", Position { version: 11, append: "one".into() }).await;
    assert_eq!((rows(&folder, "appends"), rows(&folder, "forks")), (before + 2, 2));

    store.delete(&id("s")).await.unwrap();
    assert_eq!(rows(&folder, "appends"), 10 + 2, "appends that no session shares are deleted");
    store.delete(&id("one")).await.unwrap();
    assert_eq!((rows(&folder, "appends"), rows(&folder, "forks")), (12, 2));
    store.delete(&id("two")).await.unwrap();
    assert_eq!((rows(&folder, "appends"), rows(&folder, "forks")), (0, 0));
    store.close().await;
}

#[tokio::test]
async fn a_file_of_the_first_schema_is_brought_up_to_date() {
    let folder = Folder::new();
    let store = folder.open().await;
    create(&store, &id("s")).await;
    store.close().await;
    let old = "DROP TABLE session_tags; DROP TABLE forks; DROP TABLE snapshots; ALTER TABLE streams DROP COLUMN fencing_token; \
               ALTER TABLE marks DROP COLUMN fencing_token; ALTER TABLE sessions DROP COLUMN usage; \
               PRAGMA user_version = 1;";
    folder.sql().execute_batch(old).unwrap();
    let tags = r#"INSERT INTO sessions SELECT 2, 'damaged', agent, root, parent, '[', 1, 1, append, 1,
                  status, run, runtime, pending, wake_at, lease_until FROM sessions;
                  UPDATE sessions SET tags = '{"key":"value","k\"\\é":"\n"}' WHERE id = 1"#;
    folder.sql().execute_batch(tags).unwrap();
    let store = folder.open().await;
    let tagged = SessionFilter::new().tag("key", "value").tag("k\"\\é", "\n");
    let listed = store.list(&tagged, &Page::default()).await.unwrap();
    assert_eq!(listed.iter().map(|head| head.session.as_str()).collect::<Vec<_>>(), ["s"]);
    assert!(store.delete(&id("damaged")).await.unwrap());
    assert_eq!(store.read_log(&id("s"), 0, 10).await.unwrap().len(), 1);
    assert_eq!(rows(&folder, "forks"), 0);
    let usages = store.list_usage(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert!(matches!(&*usages, [SessionUsage { usage: None, .. }]), "{usages:?}");
    store.close().await;
}
