//! The command line; what it starts is checked by hand.

use super::{KINDS, port, run};

#[test]
fn a_port_is_read_or_taken_from_the_kind() {
    let kind = KINDS.first().unwrap();
    assert_eq!(port(kind, &[]).unwrap(), kind.port);
    assert_eq!(port(kind, &["--port", "9000"]).unwrap(), 9000);
    assert!(port(kind, &["--port", "90000"]).is_err());
    assert!(port(kind, &["--prot", "1"]).is_err());
}

#[test]
fn an_unknown_server_is_answered_with_the_known_ones() {
    let error = run(&["mainframe"]).unwrap_err().to_string();
    assert_eq!(error, "no server is called mainframe; there are: model");
}
