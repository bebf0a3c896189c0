//! The model server, as the driver sees it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::timeout;

use crate::job::Seen;

/// The maximum time that the server may take for anything.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The server process. It ends with this process, even if this process crashes.
pub(super) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    pub(super) async fn start(program: &PathBuf) -> Result<Self> {
        let mut command = super::role(program, &["serve"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the model server did not start")?;
        let output = child.stdout.take().context("the model server has no output")?;
        let mut line = String::new();
        timeout(TIMEOUT, BufReader::new(output).read_line(&mut line)).await??;
        let port = line.trim().parse().context("the model server did not print its port")?;
        Ok(Self { child, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's statistics since the last [`forget`](Self::forget).
    pub(super) async fn seen(&self) -> Result<Seen> {
        let body = timeout(TIMEOUT, self.get("/seen")).await??;
        serde_json::from_slice(&body).context("the statistics of the server are unreadable")
    }

    pub(super) async fn forget(&self) -> Result<()> {
        let seen = self.seen().await?;
        ensure!(seen.bad == 0, "{} requests were wrong", seen.bad);
        timeout(TIMEOUT, self.get("/forget")).await??;
        Ok(())
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            match line.trim().split_once(": ") {
                Some(("content-length", value)) => length = value.parse()?,
                None if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        Ok(body)
    }

    /// Stops the server.
    pub(super) async fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let ended = timeout(TIMEOUT, self.child.wait()).await;
        ended.context("the model server did not end")??;
        Ok(())
    }
}
