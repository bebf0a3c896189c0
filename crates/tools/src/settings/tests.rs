//! Tests of the error for invalid settings.

use helix_agents_core::error::{Error, ErrorCode};

use crate::http::HttpTool;

#[test]
fn every_problem_is_in_the_error() {
    let error = HttpTool::new(["a.test", "b/c"]).private_ranges(["10"]).tool().unwrap_err();
    let settings: Vec<_> = error.problems().iter().map(|problem| &*problem.setting).collect();
    assert_eq!((error.tool(), &*settings), ("http_get", &["hosts/1", "private/0"][..]));
    let error = Error::from(error);
    assert_eq!(error.code(), ErrorCode::ToolInvalid);
    assert_eq!(
        error.message(),
        "the settings of the tool `http_get` are invalid: hosts/1: `b/c` is not a host; write it like \
         `api.example.com`, `*.example.org` or `127.0.0.1:8080`; private/0: `10` is not an address range; \
         write it like `10.0.0.0/8`"
    );
}
