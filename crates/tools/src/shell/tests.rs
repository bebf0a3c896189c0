//! Tests of allowed commands and of their processes.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;

fn command_input(words: &[&str]) -> CommandInput {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let (program, arguments) = words.split_first().unwrap();
    CommandInput { program: program.clone(), arguments: arguments.to_vec() }
}

fn allowed(entries: &[&str]) -> Allowed {
    Allowed::new(&entries.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>()).unwrap()
}

async fn sh(script: &str, bounds: Bounds, cancel: &CancellationToken) -> Result<Ended, ToolError> {
    let arguments = ["-c".to_owned(), script.to_owned()];
    process::run(Path::new("/bin/sh"), &arguments, Path::new("/"), bounds, cancel).await
}

const DEFAULT_BOUNDS: Bounds = Bounds { timeout: Duration::from_secs(30), max_bytes: 1000 };

#[test]
fn a_command_is_allowed_by_its_first_words_and_never_by_a_part_of_one() {
    let allowed = allowed(&["ls", "cargo test"]);
    for yes in [&["ls"][..], &["ls", "-l", "/"], &["cargo", "test"], &["cargo", "test", "-p", "x"]]
    {
        assert!(allowed.has(&command_input(yes)), "{yes:?}");
    }
    for no in [
        &["cargo"][..],
        &["cargo", "publish"],
        &["cargo", "testing"],
        &["lsof"],
        &["/bin/ls"],
        &["ls -l"],
        &["cargo test"],
        &["sh", "-c", "ls"],
    ] {
        assert!(!allowed.has(&command_input(no)), "{no:?}");
        assert!(allowed.program(&command_input(no)).unwrap_err().message().contains("not allowed"));
    }
}

#[test]
fn programs_are_names_or_absolute_paths() {
    let problems = Allowed::new(&["ls".into(), "./own".into(), " ".into(), "bin/x".into()]);
    let problems = problems.unwrap_err();
    assert_eq!(
        problems.iter().map(|problem| problem.0).collect::<Vec<_>>(),
        [1, 2, 3],
        "{problems:?}"
    );
    assert!(allowed(&["ls"]).program(&command_input(&["ls"])).unwrap().is_absolute());
    assert_eq!(
        allowed(&["/bin/sh"]).program(&command_input(&["/bin/sh"])).unwrap(),
        Path::new("/bin/sh")
    );
    let missing = allowed(&["no-such-program"]).program(&command_input(&["no-such-program"]));
    assert!(missing.unwrap_err().message().contains("does not exist"));
}

#[tokio::test]
async fn outputs_and_exit_code_are_returned_and_truncated() {
    let never = CancellationToken::new();
    let ended = sh("echo out; echo err >&2; exit 3", DEFAULT_BOUNDS, &never).await.unwrap();
    assert_eq!((ended.exit_code, &*ended.stdout, &*ended.stderr), (Some(3), "out\n", "err\n"));
    assert!(!ended.truncated);
    // Far more than a pipe buffer, so it ends only if all of it is read.
    let ended = sh("yes | head -c 1000000", DEFAULT_BOUNDS, &never).await.unwrap();
    assert_eq!((ended.stdout.len(), ended.truncated, ended.exit_code), (1000, true, Some(0)));
}

#[tokio::test]
async fn the_environment_has_no_keys_in_it() {
    let ended =
        sh("env | sed 's/=.*//' | sort", DEFAULT_BOUNDS, &CancellationToken::new()).await.unwrap();
    let own = ["PATH", "PWD", "SHLVL", "_", "OLDPWD"];
    let kept = ["HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TMPDIR", "TZ", "USER"];
    for name in ended.stdout.lines() {
        assert!(own.contains(&name) || kept.contains(&name), "{name}");
    }
    // Cargo sets many variables for tests, so there was something to clear.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
}

/// Returns `true` if a process exists and is not a zombie.
fn is_running(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

/// A script that starts a background process, writes its id to a file and waits.
fn lingering(file: &Path) -> String {
    let file = file.display();
    format!("sleep 600 & echo $! > {file}.new; mv {file}.new {file}; wait")
}

async fn written(file: &Path) -> String {
    loop {
        if let Ok(id) = std::fs::read_to_string(file) {
            return id.trim().to_owned();
        }
        tokio::task::yield_now().await;
    }
}

async fn ends(id: &str) {
    tokio::time::timeout(Duration::from_secs(20), async {
        while is_running(id) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn on_timeout_the_whole_process_group_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    let bounds = Bounds { timeout: Duration::from_secs(1), ..DEFAULT_BOUNDS };
    let script = format!("echo before; {}", lingering(&file));
    let error = sh(&script, bounds, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.message(), "the command was killed after 1 s; its output until then: before");
    ends(&written(&file).await).await;
}

#[tokio::test]
async fn cancelled_and_dropped_calls_kill_the_process_group() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let cancel = CancellationToken::new();
    let cancelled = async {
        let id = written(&first).await;
        assert!(is_running(&id));
        cancel.cancel();
        id
    };
    let (script, never) = (lingering(&first), CancellationToken::new());
    let (ended, id) = tokio::join!(sh(&script, DEFAULT_BOUNDS, &cancel), cancelled);
    assert!(ended.unwrap_err().message().contains("aborted"));
    ends(&id).await;

    let script = lingering(&second);
    let id = tokio::select! {
        ended = sh(&script, DEFAULT_BOUNDS, &never) => panic!("{ended:?}"),
        id = written(&second) => id,
    };
    ends(&id).await;
}

#[tokio::test]
async fn background_processes_do_not_outlive_the_command() {
    let script = "sleep 600 & echo $!";
    let ended = sh(script, DEFAULT_BOUNDS, &CancellationToken::new()).await.unwrap();
    ends(ended.stdout.trim()).await;
}
