//! Tests of successful and failing requests to local servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{StatusCode, Url, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::fetch::{Fetcher, Page, next};
use super::policy::Policy;

/// Starts a server that responds to each path with `answer` and then closes the connection. If the
/// response ends with `…`, it keeps the connection open instead.
async fn serve(answer: fn(path: &str, port: u16) -> String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move { reply(stream, port, answer).await });
        }
    });
    port
}

async fn reply(mut stream: TcpStream, port: u16, answer: fn(&str, u16) -> String) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split(' ').nth(1).unwrap();
    let text = answer(path, port);
    let bytes: Vec<u8> = match text.strip_prefix("latin1:") {
        Some(text) => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect(),
        None => text.trim_end_matches('…').into(),
    };
    let _gone = stream.write_all(&bytes).await;
    if path == "/endless" {
        while stream.write_all(&[b'x'; 1000]).await.is_ok() {}
    } else if text.ends_with('…') {
        while matches!(stream.read(&mut [0]).await, Ok(1)) {}
    }
}

fn page(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}")
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

fn site(path: &str, port: u16) -> String {
    let text = "content-type: text/plain\r\n";
    match path {
        "/text" => page(text, "some text"),
        "/json" => page("content-type: application/problem+json\r\n", "{}"),
        "/bare" => page("", "no type"),
        "/latin1" => {
            format!("latin1:{}", page("content-type: text/html; charset=\"ISO-8859-1\"\r\n", "Bär"))
        }
        "/image" => page("content-type: image/png\r\n", "PNG"),
        "/binary" => page(text, "a\0b"),
        "/packed" => page(&format!("{text}content-encoding: gzip\r\n"), "xxx"),
        "/far" => redirect(&format!("/{}", "x".repeat(5000))),
        "/unreadable" => redirect(&format!("http://[{}", "x".repeat(100_000))),
        "/odd-type" => page(&format!("content-type: image/{}\r\n", "x".repeat(100_000)), ""),
        "/long-type" => page(&format!("content-type: text/{}\r\n", "x".repeat(100_000)), "text"),
        "/odd-packing" => page(&format!("content-encoding: {}\r\n", "x".repeat(100_000)), ""),
        "/missing" => {
            "HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\n\r\nnot here".to_owned()
        }
        "/endless" => page(text, ""),
        "/slow" => page(&format!("{text}content-length: 100\r\n"), "slow…"),
        "/silent" => "…".to_owned(),
        "/cut" => page(&format!("{text}content-length: 100\r\n"), "cut"),
        "/umlauts" => page(text, &"ä".repeat(100)),
        "/around" => redirect("/around"),
        "/near" => redirect("/text#part"),
        "/other-port" => redirect(&format!("http://127.0.0.1:{}/", port.wrapping_add(1))),
        "/other-host" => redirect(&format!("http://localhost:{port}/text")),
        "/private" => redirect("http://169.254.169.254/latest/meta-data"),
        "/file" => redirect("file:///etc/passwd"),
        "/login" => redirect(&format!("http://user:secret@127.0.0.1:{port}/text")),
        "/nowhere" => redirect("http://"),
        _ => "HTTP/1.1 500 Oh\r\n\r\n".to_owned(),
    }
}

fn fetcher(hosts: &[String], private: &[&str]) -> Fetcher {
    let private: Vec<_> = private.iter().map(ToString::to_string).collect();
    let policy = Policy::new(hosts, &private).unwrap();
    Fetcher::new(policy, 150, Duration::from_secs(30))
}

async fn get(path: &str) -> Result<Page, String> {
    let port = serve(site).await;
    let fetcher = fetcher(&[format!("127.0.0.1:{port}")], &[]);
    let page = fetcher.get(&format!("http://127.0.0.1:{port}{path}")).await;
    let unnumbered = |text: String| text.replace(&port.to_string(), "PORT");
    page.map_err(unnumbered).map(|page| Page { url: unnumbered(page.url), ..page })
}

async fn fails(path: &str, because: &str) {
    let problem = get(path).await.unwrap_err();
    assert!(problem.contains(because), "{path}: {problem}");
}

#[tokio::test]
async fn text_is_returned_unchanged() {
    let expected = Page {
        url: "http://127.0.0.1:PORT/text".to_owned(),
        status: 200,
        content_type: "text/plain".to_owned(),
        text: "some text".to_owned(),
        truncated: false,
    };
    assert_eq!(get("/text").await.unwrap(), expected);
    assert_eq!(get("/near").await.unwrap(), expected);
    for (path, status, text) in [
        ("/json", 200, "{}"),
        ("/bare", 200, "no type"),
        ("/latin1", 200, "Bär"),
        ("/missing", 404, "not here"),
    ] {
        let page = get(path).await.unwrap();
        assert_eq!((page.status, &*page.text), (status, text), "{path}");
    }
}

#[tokio::test]
async fn responses_without_text_are_rejected() {
    fails("/image", "the response is `image/png`, not text").await;
    fails("/binary", "the response is not text").await;
    fails("/packed", "content encoding `gzip`").await;
}

#[tokio::test]
async fn an_endless_response_is_truncated() {
    let page = get("/endless").await.unwrap();
    assert_eq!((page.text.len(), page.truncated), (150, true));
    let page = get("/umlauts").await.unwrap();
    assert_eq!((&*page.text, page.truncated), (&*"ä".repeat(75), true));
}

#[tokio::test]
async fn a_slow_server_causes_a_timeout() {
    let port = serve(site).await;
    let policy = Policy::new(&[format!("127.0.0.1:{port}")], &[]).unwrap();
    let hasty = Fetcher::new(policy, 150, Duration::from_millis(300));
    for path in ["/slow", "/silent"] {
        let problem = hasty.get(&format!("http://127.0.0.1:{port}{path}")).await.unwrap_err();
        assert!(problem.contains("no response within 0.3 s"), "{path}: {problem}");
    }
    fails("/cut", "the connection failed while the response was read").await;
}

#[tokio::test]
async fn redirects_follow_the_policy() {
    fails("/around", "more than 5 redirects").await;
    fails("/other-port", "is not allowed; only these are: 127.0.0.1:PORT").await;
    fails("/other-host", "the host `localhost:PORT` is not allowed").await;
    fails("/private", "the host `169.254.169.254` is not allowed").await;
    fails("/file", "`file` URLs are not allowed").await;
    fails("/login", "user names and passwords").await;
    fails("/nowhere", "which is not a URL").await;
}

#[test]
fn redirects_from_https_to_http_are_rejected() {
    let to = |location: &str| {
        let url = Url::parse("https://a.test/b/c").unwrap();
        let headers = [(header::LOCATION, location.parse().unwrap())].into_iter().collect();
        next(&url, StatusCode::FOUND, &headers)
    };
    assert_eq!(to("../d#e").unwrap().unwrap().as_str(), "https://a.test/d");
    assert_eq!(to("//b.test/").unwrap().unwrap().as_str(), "https://b.test/");
    let problem = to("http://a.test/").unwrap_err();
    assert!(problem.contains("is not encrypted"), "{problem}");
}

#[tokio::test]
async fn names_of_private_addresses_are_rejected() {
    let port = serve(site).await;
    let (hosts, url) = ([format!("a.test:{port}")], format!("http://a.test:{port}/text"));
    let to = |addresses: &'static [&'static str]| -> super::fetch::Lookup {
        Arc::new(move |_| {
            let parse = |address: &&str| SocketAddr::new(address.parse().unwrap(), 0);
            let found: Vec<_> = addresses.iter().map(parse).collect();
            Box::pin(async move { Ok(found) })
        })
    };
    for address in [&["127.0.0.1"][..], &["::ffff:127.0.0.1"], &["0.0.0.0"], &["::1", "10.0.0.1"]] {
        let fetcher = fetcher(&hosts, &[]).with_lookup(to(address));
        let problem = fetcher.get(&url).await.unwrap_err();
        assert!(problem.contains("resolves to a private address"), "{address:?}: {problem}");
    }
    let listed = fetcher(&hosts, &["127.0.0.0/8"]).with_lookup(to(&["10.0.0.1", "127.0.0.1"]));
    assert_eq!(listed.get(&url).await.unwrap().text, "some text");
    let nowhere = fetcher(&hosts, &[])
        .with_lookup(Arc::new(|_| Box::pin(async { Err(std::io::Error::other("no such name")) })));
    let problem = nowhere.get(&url).await.unwrap_err();
    assert_eq!(problem, "the name `a.test` cannot be resolved: no such name");
}

#[tokio::test]
async fn localhost_has_to_be_listed() {
    let port = serve(site).await;
    let url = format!("http://localhost:{port}/text");
    let page = fetcher(&[format!("localhost:{port}")], &[]).get(&url).await.unwrap();
    assert_eq!(page.text, "some text");
    let problem = fetcher(&[format!("127.0.0.1:{port}")], &[]).get(&url).await.unwrap_err();
    assert!(problem.contains("is not allowed"), "{problem}");
}

#[tokio::test]
async fn unreachable_servers_and_invalid_urls_are_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let fetcher = fetcher(&[format!("127.0.0.1:{port}")], &[]);
    let problem = fetcher.get(&format!("http://127.0.0.1:{port}/")).await.unwrap_err();
    assert!(problem.starts_with("`127.0.0.1` cannot be reached"), "{problem}");
    for url in ["", "example.com", "http://", "/text", "http://[::1"] {
        let problem = fetcher.get(url).await.unwrap_err();
        assert!(problem.contains("is not a URL"), "{url}: {problem}");
    }
}

#[tokio::test]
async fn header_values_are_shortened() {
    let port = serve(site).await;
    let fetcher = fetcher(&[format!("127.0.0.1:{port}")], &["127.0.0.0/8"]);
    for path in ["/far", "/unreadable", "/odd-type", "/odd-packing"] {
        let problem = fetcher.get(&format!("http://127.0.0.1:{port}{path}")).await.unwrap_err();
        assert!(problem.contains("xxx…`") && problem.len() < 400, "{path}: {problem}");
    }
    let page = fetcher.get(&format!("http://127.0.0.1:{port}/long-type")).await.unwrap();
    assert_eq!((page.text.as_str(), page.content_type.chars().count()), ("text", 200));
}
