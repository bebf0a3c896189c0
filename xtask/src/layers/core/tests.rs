//! Imports between the layers of the core crate, and `async` in them.

use super::*;

fn up(files: &[(&str, &str)]) -> Vec<String> {
    upward(&Crate::read(FOLDER, files.iter().copied()).unwrap())
}

#[test]
fn imports_lead_down() {
    let contract = ("crates/core/src/contracts/id.rs", "use crate::machine::Step;");
    let machine = ("crates/core/src/machine.rs", "pub struct Step; use crate::contracts::id::Id;");
    let root = ("crates/core/src/lib.rs", "pub use machine::Step;");
    let complaint = "crates/core/src/contracts/id.rs: imports crates/core/src/machine.rs, which is in a higher layer";
    assert_eq!(up(&[root, machine, contract]), [complaint]);
    assert_eq!(
        up(&[root, machine, ("crates/core/src/contracts/id.rs", "pub struct Id;")]),
        [""; 0]
    );
}

#[test]
fn the_machine_does_not_await() {
    let path = "crates/core/src/machine/step.rs";
    assert_eq!(awaiting(path, "//! async\nfn step() {}\n"), [""; 0]);
    assert_eq!(
        awaiting(path, "fn step() {}\nasync fn f() {}"),
        [format!("{path}:2: the machine has no `async`")]
    );
    assert_eq!(awaiting("crates/core/src/journal/load.rs", "async fn load() {}"), [""; 0]);
    assert_eq!(awaiting("crates/core/src/machine/step/tests.rs", "async fn test() {}"), [""; 0]);
}
