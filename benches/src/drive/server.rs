//! The model server as the driver has it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::timeout;

use crate::job::Seen;

/// How long the server may take for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server's process. It ends with this one, however that ends.
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
        timeout(PATIENCE, BufReader::new(output).read_line(&mut line)).await??;
        let port = line.trim().parse().context("the model server did not say its port")?;
        Ok(Self { child, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What it saw since it was last asked to forget.
    pub(super) async fn seen(&self) -> Result<Seen> {
        let body = timeout(PATIENCE, self.get("/seen")).await??;
        serde_json::from_slice(&body).context("what the server saw cannot be read")
    }

    pub(super) async fn forget(&self) -> Result<()> {
        let seen = self.seen().await?;
        ensure!(seen.bad == 0, "{} requests were wrong", seen.bad);
        timeout(PATIENCE, self.get("/forget")).await??;
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

    /// Ends it.
    pub(super) async fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let ended = timeout(PATIENCE, self.child.wait()).await;
        ended.context("the model server does not end")??;
        Ok(())
    }
}
