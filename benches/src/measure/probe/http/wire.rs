//! A client that costs next to nothing: it writes requests and searches the response for what it waits for.

use anyhow::{Result, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::AGENT;

/// A connection that is kept for further requests, until it follows a stream.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// Requests a path and reads the whole response.
    pub(super) async fn get(&mut self, path: &str) -> Result<()> {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await?;
        self.read_response().await
    }

    /// Starts a run.
    pub(super) async fn start(&mut self, session: &str) -> Result<()> {
        let body =
            format!(r#"{{"sessionId":"{session}","agentType":"{AGENT}","message":"Talk!"}}"#);
        let length = body.len();
        let head = "POST /start HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        self.send(&format!("{head}content-length: {length}\r\n\r\n{body}")).await?;
        self.read_response().await
    }

    /// Requests the stream of a session.
    pub(super) async fn follow(&mut self, session: &str) -> Result<()> {
        self.send(&format!("GET /sse?sessionId={session} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
            .await
    }

    /// Reads until a text arrives.
    pub(super) async fn until(&mut self, text: &str) -> Result<()> {
        let mut searched = 0;
        loop {
            let unread = self.buffer.get(searched..).unwrap_or_default();
            if let Some(at) = memmem::find(unread, text.as_bytes()) {
                self.buffer.drain(..searched + at + text.len());
                return Ok(());
            }
            // The text may arrive in two pieces.
            searched = self.buffer.len().saturating_sub(text.len());
            self.read().await?;
        }
    }

    async fn send(&mut self, request: &str) -> Result<()> {
        self.buffer.clear();
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    async fn read(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the connection ended: {}", String::from_utf8_lossy(&self.buffer));
        }
        Ok(())
    }

    async fn read_response(&mut self) -> Result<()> {
        loop {
            if let Some(end) = memmem::find(&self.buffer, b"\r\n\r\n") {
                let head = self.buffer.get(..end).unwrap_or_default();
                let head = String::from_utf8_lossy(head).to_ascii_lowercase();
                if !head.starts_with("http/1.1 2") {
                    bail!("the server refused the request: {head}");
                }
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.unwrap_or("0").trim().parse()?;
                if self.buffer.len() >= end + 4 + length {
                    return Ok(());
                }
            }
            self.read().await?;
        }
    }
}
