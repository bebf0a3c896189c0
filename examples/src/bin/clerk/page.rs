//! The built page. Its files are read once, so a request cannot reach any others.

use std::path::Path;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use bytes::Bytes;

/// Returns a route for each file of the folder. `index.html` is the page at `/`.
pub(crate) fn routes(folder: &Path) -> Result<Router> {
    let shown = folder.display();
    let files = std::fs::read_dir(folder)
        .with_context(|| format!("could not read {shown}; build the page first"))?;
    let mut routes = Router::new();
    for file in files {
        let path = file?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(media_type) = media_type(name) else { continue };
        let content = Bytes::from(std::fs::read(&path)?);
        let route = if name == "index.html" { "/".to_owned() } else { format!("/{name}") };
        let reply = move || async move { ([(CONTENT_TYPE, media_type)], content) };
        routes = routes.route(&route, get(reply));
    }
    Ok(routes)
}

/// Returns the media type of a file of the page, by its name.
fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        _ => return None,
    })
}
