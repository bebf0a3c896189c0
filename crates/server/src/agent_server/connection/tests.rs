//! Connections over their limit, and the time limit for the head of a request.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::Connection;

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_cut() {
    let (_client, server) = duplex(16);
    let mut connection = Connection::new(server, TIMEOUT);
    connection.write_all(&[0; 16]).await.unwrap();
    let started = tokio::time::Instant::now();
    let error = connection.write_all(&[0; 16]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(started.elapsed() >= TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_slowly_is_not() {
    let (mut client, server) = duplex(16);
    let mut connection = Connection::new(server, TIMEOUT);
    let reading = async {
        for _ in 0..32 {
            tokio::time::sleep(TIMEOUT / 2).await;
            client.read_u8().await.unwrap();
        }
    };
    let writing = async {
        connection.write_all(&[0; 32]).await.unwrap();
        connection
    };
    let (connection, ()) = tokio::join!(writing, reading);
    drop(connection);
}
