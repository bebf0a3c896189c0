//! What is found out about a pooler.

use sqlx::{Connection as _, PgConnection};

use helix_agents_testkit::servers;

use super::Prepared;

/// The server keeps the names that it is sent, and so does a pooler that knows nothing of them.
#[tokio::test]
async fn names_that_come_as_they_were_sent_are_not_relied_on() {
    let url = servers::postgres();
    let mut connection = PgConnection::connect(&url).await.unwrap();
    for _ in 0..2 {
        let prepared = Prepared::by_pooler(&mut connection).await.unwrap();
        assert_eq!(prepared, Prepared::Unnamed);
    }
    // Somebody else, to whom the same connection of the server was lent, has used the name.
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("PREPARE sqlx_s_1 AS SELECT 1").execute(&mut connection).await.unwrap();
    let prepared = Prepared::by_pooler(&mut connection).await.unwrap();
    assert_eq!(prepared, Prepared::Unnamed);
}
