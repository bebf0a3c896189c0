//! Supported server versions.

use helix_agents_core::error::ErrorCode;

use super::{Persistence, ServerSettings};

#[test]
fn a_server_that_is_too_old_is_refused() {
    let checked = |version: &str| {
        let settings = ServerSettings {
            version: version.to_owned(),
            is_cluster: false,
            is_replica: false,
            eviction: "noeviction".to_owned(),
            max_memory: 0,
            used_memory: 0,
            persistence: Persistence::Always,
            replicas: 0,
        };
        settings.check().map_err(|error| error.code())
    };
    for version in ["6.0.9", "5.0.14", "6", "", "old"] {
        assert_eq!(checked(version), Err(ErrorCode::ConfigInvalid), "{version}");
    }
    for version in ["6.2.0", "6.2", "7.0.15", "10.0.0"] {
        assert_eq!(checked(version), Ok(()), "{version}");
    }
}
