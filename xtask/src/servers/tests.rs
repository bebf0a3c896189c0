//! The command line. The servers themselves are checked manually.

use super::{KINDS, Port, port, run, version};

#[test]
fn a_port_is_parsed_or_the_default_of_the_kind() {
    let kind = KINDS.first().unwrap();
    assert_eq!(port(kind, &[]).unwrap(), Port::Preferred(kind.port));
    assert_eq!(port(kind, &["--port", "9000"]).unwrap(), Port::Exactly(9000));
    assert!(port(kind, &["--port", "90000"]).is_err());
    assert!(port(kind, &["--prot", "1"]).is_err());
}

#[test]
fn the_error_for_an_unknown_server_lists_the_known_ones() {
    let error = run(&["mainframe"]).unwrap_err().to_string();
    assert_eq!(
        error,
        "no server is called mainframe; known servers: model, postgres, pgbouncer, redis, temporal"
    );
}

#[test]
fn a_taken_port_is_replaced_only_if_it_was_a_preference() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    assert_ne!(super::daemon::free(Port::Preferred(port)).unwrap(), port);
    let error = super::daemon::free(Port::Exactly(port)).unwrap_err().to_string();
    assert!(error.contains("another program listens"), "{error}");
}

#[test]
fn a_version_is_found_in_the_output_of_a_program() {
    assert_eq!(version("PgBouncer 1.18.0\nlibevent 2.1.12-stable\n"), Some((1, 18)));
    assert_eq!(version("PgBouncer version 1.24.1"), Some((1, 24)));
    assert_eq!(version("no number at all"), None);
}
