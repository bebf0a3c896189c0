//! Errors as servers send them.

use helix_agents_core::error::ErrorCode as C;
use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::classify;

fn extension(code: &str, text: &str) -> RedisError {
    redis::make_extension_error(code.to_owned(), Some(text.to_owned()))
}

#[test]
fn server_errors_map_to_their_codes() {
    let script = |text: &str| {
        let kind = ErrorKind::Server(ServerErrorKind::ResponseError);
        RedisError::from((kind, "An error was signalled by the server", text.to_owned()))
    };
    let oom = "command not allowed when used memory > 'maxmemory'.";
    let cases = [
        (extension("OOM", oom), C::StoreFull),
        (script("OOM command not allowed when used memory > 'maxmemory'. script: 1"), C::StoreFull),
        (
            script("WRONGTYPE Operation against a key holding the wrong kind of value"),
            C::StoreCorrupt,
        ),
        (extension("NOAUTH", "Authentication required."), C::ConfigInvalid),
        (extension("WRONGPASS", "invalid username-password pair"), C::ConfigInvalid),
        (extension("MISCONF", "Redis is configured to save RDB snapshots"), C::StoreUnavailable),
        (extension("NOREPLICAS", "Not enough good replicas to write."), C::StoreUnavailable),
        (extension("BUSY", "Redis is busy running a script."), C::StoreBusy),
        (script("unknown command 'XADD'"), C::Unsupported),
        (script("something else"), C::Internal),
        (std::io::Error::from(std::io::ErrorKind::BrokenPipe).into(), C::StoreUnavailable),
        (std::io::Error::from(std::io::ErrorKind::TimedOut).into(), C::StoreUnavailable),
    ];
    for (error, code) in cases {
        let text = error.to_string();
        assert_eq!(classify(error).code(), code, "{text}");
    }
}
