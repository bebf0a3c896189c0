//! The mock server as a process: installed once per machine, started for each test, and killed at
//! its end.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

/// The mock, and the SDK whose types validate requests.
const PACKAGES: [&str; 2] = ["llmock==0.2.2", "openai==2.54.0"];

/// The file that is written into the environment once everything is installed.
const MARK: &str = "helix-agents-installed";

const DEADLINE: Duration = Duration::from_secs(60);

/// Validates the bodies on its input against the SDK's type of a streaming request.
const JUDGE: &str = "\
import json, sys
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from pydantic import TypeAdapter
judge = TypeAdapter(CompletionCreateParamsStreaming)
for body in json.load(sys.stdin):
    judge.validate_python(body)
";

/// A running mock server.
#[derive(Debug)]
pub(super) struct Llmock {
    pub(super) url: String,
    process: Child,
    python: PathBuf,
    client: reqwest::Client,
}

impl Llmock {
    pub(super) async fn start() -> Self {
        let (process, python, url) = tokio::task::spawn_blocking(launch).await.unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { url, process, python, client }
    }

    /// Queues behaviours for the next requests.
    pub(super) async fn script(&self, behaviours: &[Value]) {
        let body = json!({ "behaviors": behaviours }).to_string();
        let request = self.client.post(format!("{}/_llmock/scenario", self.url)).body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 201, "{}", response.text().await.unwrap());
    }

    /// Returns the mock's evaluation of the client so far.
    pub(super) async fn verdict(&self) -> Value {
        self.get("verdict").await
    }

    /// Returns the bodies of all requests so far.
    pub(super) async fn bodies(&self) -> Vec<Value> {
        let answer = self.get("requests").await;
        let requests = answer["requests"].as_array().unwrap();
        requests.iter().map(|request| request["body"].clone()).collect()
    }

    async fn get(&self, what: &str) -> Value {
        let request = self.client.get(format!("{}/_llmock/{what}", self.url));
        let body = request.send().await.unwrap().bytes().await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Validates request bodies with the official SDK.
    #[track_caller]
    pub(super) fn check_bodies(&self, bodies: &[Value]) {
        let mut judge = Command::new(&self.python)
            .args(["-c", JUDGE])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = serde_json::to_vec(bodies).unwrap();
        judge.stdin.take().unwrap().write_all(&input).unwrap();
        let output = judge.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Llmock {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Starts the server and reads its address from its log.
fn launch() -> (Child, PathBuf, String) {
    let bin = installed().join("bin");
    let mut process = Command::new(bin.join("llmock"))
        .args(["serve", "--host", "127.0.0.1", "--port", "0", "--response-style", "static"])
        // The time to notice, between two chunks, that the client has disconnected.
        .args(["--stream-chunk-delay-ms", "25"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = BufReader::new(process.stderr.take().unwrap());
    let (found, wait) = mpsc::channel();
    // The log is read to its end, because a full pipe would block the server.
    std::thread::spawn(move || {
        let mut seen = String::new();
        for line in log.lines().map_while(Result::ok) {
            let address = line.split_once("running on ");
            if let Some(url) = address.and_then(|parts| parts.1.split(' ').next()) {
                drop(found.send(Ok(url.to_owned())));
            }
            seen = line;
        }
        drop(found.send(Err(seen)));
    });
    match wait.recv_timeout(DEADLINE) {
        Ok(Ok(url)) => (process, bin.join("python"), url),
        failed => {
            drop(process.kill());
            panic!("llmock did not start: {failed:?}");
        }
    }
}

/// Returns the Python environment with the packages, which is created on first use.
fn installed() -> PathBuf {
    let set =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let cache = cache.unwrap_or_else(|| panic!("neither XDG_CACHE_HOME nor HOME is set"));
    let folder = cache.join("helix-agents");
    std::fs::create_dir_all(&folder).unwrap();
    let venv = folder.join("llmock-venv");

    // Tests run in several processes. One of them installs; the others wait here.
    let lock = File::create(folder.join("llmock-venv.lock")).unwrap();
    lock.lock().unwrap();
    if !is_installed(&venv) {
        install(&venv);
    }
    venv
}

fn is_installed(venv: &Path) -> bool {
    let mut mark = String::new();
    File::open(venv.join(MARK)).is_ok_and(|mut file| file.read_to_string(&mut mark).is_ok())
        && mark == PACKAGES.join("\n")
        && venv.join("bin/llmock").is_file()
}

fn install(venv: &Path) {
    let path = venv.to_str().unwrap();
    run("python3", &["-m", "venv", "--clear", path]);
    let pip = venv.join("bin/pip");
    let mut args = vec!["install", "--quiet", "--disable-pip-version-check"];
    args.extend(PACKAGES);
    run(pip.to_str().unwrap(), &args);
    std::fs::write(venv.join(MARK), PACKAGES.join("\n")).unwrap();
}

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output().unwrap_or_else(|error| {
        panic!(
            "the tests against llmock need Python 3 with its `venv` module, and a package index \
             for {PACKAGES:?}: `{program}` cannot be started: {error}"
        )
    });
    assert!(
        output.status.success(),
        "the tests against llmock need Python 3 with its `venv` module, and a package index for \
         {PACKAGES:?}: `{program} {}` failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}
