//! Detection of a pooler's support for prepared statements.

use sqlx::{Connection as _, PgConnection};

use helix_agents_testkit::servers;

use super::Prepared;

/// The server keeps the names that it receives, like a pooler without support for prepared
/// statements.
#[tokio::test]
async fn unchanged_statement_names_mean_no_support() {
    let url = servers::postgres();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    for _ in 0..2 {
        let prepared = Prepared::by_pooler(&mut connection).await.unwrap();
        assert_eq!(prepared, Prepared::Unnamed);
    }
    // Another client that used the same server connection has taken the name.
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("PREPARE sqlx_s_1 AS SELECT 1").execute(&mut connection).await.unwrap();
    let prepared = Prepared::by_pooler(&mut connection).await.unwrap();
    assert_eq!(prepared, Prepared::Unnamed);
}
