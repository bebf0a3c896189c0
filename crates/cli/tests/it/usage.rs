//! `helix usage`.

use serde_json::Value;

use crate::support::TestDir;

/// The rows of one kind: name, calls and failures.
fn rows(usage: &Value, kind: &str) -> Vec<(String, u64, u64)> {
    let of_kind = |row: &&Value| row["source"] == kind;
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let rows = usage["sources"].as_array().unwrap().iter().filter(of_kind);
    rows.map(|row| {
        let name = row["source_name"].as_str().unwrap().to_owned();
        (name, number(row, "calls"), number(row, "failed"))
    })
    .collect()
}

#[tokio::test]
async fn usage_is_shown_for_one_session_and_over_all() {
    let (dir, session) = TestDir::after_demo().await;
    let one = dir.helix(&["usage", &session, "--json"]).await.json();
    assert_eq!((&one["session"], &one["steps"]), (&session.as_str().into(), &5.into()));
    assert_eq!(one["tool_calls"], 7);
    let calls: u64 = rows(&one, "tool").iter().map(|row| row.1).sum();
    assert_eq!(calls, 7, "{one}");
    let steps: u64 = rows(&one, "tokens").iter().map(|row| row.1).sum();
    assert_eq!(steps, 5, "{one}");
    let alone = dir.helix(&["usage", &session, "--alone", "--json"]).await.json();
    assert_eq!(alone, one, "the session has no child sessions");

    dir.helix(&["demo", "--scripted", "--pace", "0", "--json"]).await.json();
    let all = dir.helix(&["usage", "--json"]).await.json();
    assert_eq!((&all["sessions"], &all["steps"]), (&2.into(), &10.into()));

    let text = dir.helix(&["usage"]).await.stdout;
    assert!(text.starts_with("TYPE") && text.contains("look_up"), "{text}");
    assert!(
        text.trim_end().lines().last().unwrap().starts_with("2 sessions: 10 model calls"),
        "{text}"
    );
    let text = dir.helix(&["usage", &session]).await.stdout;
    assert!(text.contains(&format!("session {session}: 5 model calls")), "{text}");
}

#[tokio::test]
async fn usage_is_selected_by_agent_label_state_and_time() {
    let (dir, _) = TestDir::after_demo().await;
    let selects = [
        (&["--agent", "researcher"][..], 1),
        (&["--agent", "nobody"], 0),
        (&["--status", "completed"], 1),
        (&["--status", "failed"], 0),
        (&["--tag", "model=script"], 1),
        (&["--tag", "model=script", "--tag", "model2=x"], 0),
        (&["--since", "1h"], 1),
        (&["--before", "1h"], 0),
        (&["--since", "2020-01-01T00:00:00Z", "--before", "2020-01-02T00:00:00Z"], 0),
    ];
    for (options, sessions) in selects {
        let arguments = [&["usage", "--json"], options].concat();
        let usage = dir.helix(&arguments).await.json();
        assert_eq!(usage["sessions"], sessions, "{options:?}");
    }
}

#[tokio::test]
async fn a_wrong_selection_of_usage_is_refused() {
    let (dir, session) = TestDir::after_demo().await;
    for wrong in [
        &["usage", &session, "--agent", "researcher"][..],
        &["usage", "--alone"],
        &["usage", "--tag", "model"],
        &["usage", "--since", "yesterday"],
    ] {
        let refused = dir.helix(wrong).await;
        assert_eq!((refused.code, &*refused.stdout), (2, ""), "{wrong:?}");
    }
    let missing = dir.helix(&["usage", "nobody", "--json"]).await;
    assert_eq!((missing.code, &*missing.stdout), (1, ""));
    assert!(missing.stderr.contains("session_not_found"), "{}", missing.stderr);
}
