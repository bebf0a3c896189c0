//! Recordings for `tests-frontends`, which plays them to the real packages.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;

/// Appends a recording to a file of the folder that `HELIX_FRAMES` names, if it is set.
pub(crate) fn record(protocol: &str, recording: &impl Serialize) {
    let Some(folder) = std::env::var_os("HELIX_FRAMES").map(PathBuf::from) else { return };
    let path = folder.join(format!("{protocol}.jsonl"));
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    let mut line = serde_json::to_vec(recording).unwrap();
    line.push(b'\n');
    file.write_all(&line).unwrap();
}
