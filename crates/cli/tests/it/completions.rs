//! `helix completions`.

use tokio::process::Command;

use crate::support::TestDir;

/// A script that loads the completions and completes the last of its arguments.
const ASK_BASH: &str = r#"
set -euo pipefail
source <("$HELIX" completions bash)
spec=$(complete -p helix)
function=${spec#*-F }
function=${function%% *}
COMP_WORDS=(helix "$@")
COMP_CWORD=$#
"$function" helix "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

async fn complete_in_bash(words: &[&str]) -> Vec<String> {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ASK_BASH, "bash"]).args(words);
    let output = bash.env("HELIX", env!("CARGO_BIN_EXE_helix")).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn bash_completes_commands_and_options() {
    assert_eq!(complete_in_bash(&["sess"]).await, ["sessions"]);
    assert_eq!(complete_in_bash(&["sessions", "chec"]).await, ["checkpoints"]);
    assert_eq!(complete_in_bash(&["demo", "--scr"]).await, ["--scripted"]);
    assert_eq!(complete_in_bash(&["completions", "f"]).await, ["fish"]);
}

#[tokio::test]
async fn every_shell_has_a_script() {
    let dir = TestDir::new();
    for (shell, mark) in [
        ("bash", "complete -F _helix"),
        ("zsh", "#compdef helix"),
        ("fish", "complete -c helix"),
        ("elvish", "edit:completion:arg-completer[helix]"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let done = dir.helix(&["completions", shell]).await;
        assert_eq!((done.code, &*done.stderr), (0, ""), "{shell}");
        assert!(done.stdout.contains(mark), "{shell}: {}", done.stdout);
        assert!(done.stdout.contains("checkpoints"), "{shell}: {}", done.stdout);
        let json = dir.helix(&["completions", shell, "--json"]).await.json();
        assert_eq!((&json["shell"], &json["script"]), (&shell.into(), &done.stdout.into()));
    }
}

#[tokio::test]
async fn the_error_for_an_unknown_shell_lists_all_shells() {
    let done = TestDir::new().helix(&["completions", "tcsh"]).await;
    assert_eq!((done.code, &*done.stdout), (2, ""));
    assert!(done.stderr.contains("bash, elvish, fish, powershell, zsh"), "{}", done.stderr);
}
