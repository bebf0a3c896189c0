//! Lists by tag: the rows that they read, and the tags of an older schema.

use sqlx::Row as _;

use helix_agents_core::store::{Page, SessionFilter, StateStore as _};

use super::support::{Database, create, id};

/// Returns the number of rows of `sessions` that statements have read.
async fn rows_read(database: &Database) -> i64 {
    let quoted = database.schema.replace('\'', "''");
    let sql = format!(
        "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables
         WHERE relname = 'sessions' AND schemaname = '{quoted}'"
    );
    database.sql(&sql).await.first().unwrap().get(0)
}

/// Other sessions cost nothing, however many there are.
#[tokio::test]
async fn a_list_by_tag_reads_the_sessions_with_the_tag_only() {
    const OTHERS: u32 = 20_000;
    let database = Database::new();
    let store = database.open().await;
    create(&store, &id("s")).await;
    // The newest sessions have another tag, except for every two-thousandth.
    database
        .sql(&format!(
            "INSERT INTO {{s}}.sessions (session, agent, root, tags, created_at, version, append,
                 updated_at, status, runtime, pending)
             SELECT 'o' || n, agent, root, '{{}}', created_at + n, 1, append, updated_at, status,
                 runtime, pending
             FROM {{s}}.sessions, generate_series(1, {OTHERS}) AS n;
             INSERT INTO {{s}}.session_tags (session, key, value, created_at)
             SELECT session, 'owner', CASE n % 2000 WHEN 0 THEN 'ann' ELSE 'bob' END, created_at
             FROM (SELECT session, created_at, substr(session, 2)::integer AS n
                   FROM {{s}}.sessions WHERE session <> 's') AS other;
             UPDATE {{s}}.sessions SET tags = '{{\"owner\":\"ann\"}}'
             WHERE session IN (SELECT session FROM {{s}}.session_tags WHERE value = 'ann');
             ANALYZE {{s}}.sessions, {{s}}.session_tags"
        ))
        .await;
    let before = rows_read(&database).await;
    let filter = SessionFilter::new().tag("owner", "ann");
    let mut page = Page { after: None, limit: 4 };
    let mut listed = Vec::new();
    loop {
        let heads = store.list(&filter, &page).await.unwrap();
        let Some(last) = heads.last() else { break };
        page.after = Some(last.session.clone());
        listed.extend(heads.iter().map(|head| head.session.to_string()));
    }
    let expected: Vec<_> = (1..=10).rev().map(|number| format!("o{}", number * 2000)).collect();
    assert_eq!(listed, expected);
    store.close().await;
    // The server updates its statistics when a connection ends.
    let read = loop {
        let read = rows_read(&database).await - before;
        if read >= 10 {
            break read;
        }
        tokio::task::yield_now().await;
    };
    assert!(read < 50, "{read} rows were read");
}

#[tokio::test]
async fn tags_of_an_older_schema_are_listed_unless_they_are_beyond_the_limits() {
    let database = Database::new();
    let store = database.open().await;
    for name in ["fits", "long", "nul"] {
        create(&store, &id(name)).await;
    }
    store.close().await;
    for old in [
        "UPDATE {s}.sessions SET tags = '{\"k\\\"é\":\"\\n\"}' WHERE session = 'fits'",
        "UPDATE {s}.sessions SET tags = json_build_object('long', repeat('x', 9000), 'k', 'v')
         WHERE session = 'long'",
        "UPDATE {s}.sessions SET tags = '{\"k\":\"\\u0000\"}' WHERE session = 'nul'",
        "DROP TABLE {s}.session_tags",
        "DELETE FROM {s}.helix_schema WHERE number = 5",
    ] {
        database.sql(old).await;
    }
    let store = database.open().await;
    for (key, value, expected) in [("k\"é", "\n", "fits"), ("k", "v", "long")] {
        let filter = SessionFilter::new().tag(key, value);
        let heads = store.list(&filter, &Page::default()).await.unwrap();
        let names: Vec<_> = heads.iter().map(|head| head.session.as_str()).collect();
        assert_eq!(names, [expected]);
    }
    for name in ["fits", "long", "nul"] {
        assert!(store.delete(&id(name)).await.unwrap());
    }
    assert!(database.sql("SELECT 1 FROM {s}.session_tags").await.is_empty());
}
