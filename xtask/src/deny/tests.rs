//! Licence expressions, and one violation of each rule of `deny.toml`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::config::{Clarification, Config, LicenseFile};
use super::{
    DEFAULT_REGISTRY, Locked, check_bans, check_licenses, check_sources, check_wildcards, files,
    repeated, spdx,
};
use crate::workspace::{Dependency, Package};

const NONE: [&str; 0] = [];

fn config() -> Config {
    toml::from_str(
        r#"
        [graph]
        all-features = true
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        exceptions = [{ crate = "roots", allow = ["MPL-2.0"] }]
        [bans]
        multiple-versions = "warn"
        wildcards = "deny"
        deny = [{ crate = "openssl-sys", reason = "rustls only" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
        "#,
    )
    .unwrap()
}

fn package(name: &str, license: Option<&str>) -> Package {
    Package {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        source: None,
        license: license.map(str::to_owned),
        manifest_path: PathBuf::new(),
        dependencies: Vec::new(),
    }
}

fn locked(name: &str, version: &str, source: Option<&str>) -> Locked {
    Locked { name: name.to_owned(), version: version.to_owned(), source: source.map(str::to_owned) }
}

#[test]
fn an_expression_needs_one_side_of_or_and_both_of_and() {
    let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
    let satisfied = |expression| spdx::is_satisfied(expression, &allowed).unwrap();
    assert!(satisfied("MIT"));
    assert!(satisfied("GPL-3.0 OR MIT"));
    assert!(satisfied("GPL-3.0/MIT"));
    assert!(satisfied("GPL-3.0 / MIT"));
    assert!(satisfied("Apache-2.0 WITH LLVM-exception AND ISC"));
    assert!(satisfied("(GPL-3.0 OR MIT) AND ISC"));
    assert!(satisfied("MIT OR ISC AND GPL-3.0"), "AND binds tighter");
    assert!(!satisfied("(MIT OR ISC) AND GPL-3.0"));
    assert!(!satisfied("MIT AND GPL-3.0"));
    assert!(!satisfied("Apache-2.0"), "listed only with its exception");
    assert!(!satisfied("MIT WITH other"));
}

#[test]
fn an_invalid_expression_is_an_error() {
    for wrong in ["", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT ISC", "MIT WITH"] {
        assert!(spdx::is_satisfied(wrong, &BTreeSet::from(["MIT"])).is_err(), "{wrong}");
    }
}

#[test]
fn a_licence_is_allowed_for_all_packages_or_for_one() {
    let packages = [
        package("good", Some("MIT OR GPL-3.0")),
        package("roots", Some("MPL-2.0")),
        package("other", Some("MPL-2.0")),
        package("silent", None),
        package("odd", Some("MIT OR")),
    ];
    assert_eq!(
        check_licenses(&config(), &packages),
        [
            "other 1.0.0: its licence is not allowed: MPL-2.0",
            "silent 1.0.0: has no licence",
            "odd 1.0.0: cannot parse its licence `MIT OR`: unexpected end",
        ]
    );
}

#[test]
fn a_banned_package_is_named_with_the_reason() {
    let packages = [locked("openssl-sys", "0.9.1", None), locked("openssl-probe", "0.2.0", None)];
    assert_eq!(
        check_bans(&config(), &packages),
        ["openssl-sys 0.9.1: banned: rustls only; see `cargo tree --target all -i openssl-sys`"]
    );
}

#[test]
fn a_dependency_requires_a_version_unless_it_is_a_path() {
    let dependency = |name: &str, req: &str, path| Dependency {
        name: name.to_owned(),
        req: req.to_owned(),
        kind: None,
        path,
    };
    let mut ours = package("ours", Some("MIT"));
    ours.dependencies = vec![
        dependency("wild", "*", None),
        dependency("good", "^1.0", None),
        dependency("near", "*", Some(PathBuf::new())),
    ];
    assert_eq!(
        check_wildcards(&config(), &[ours]),
        ["ours: accepts any version of wild; require one"]
    );
}

#[test]
fn packages_come_from_here_or_from_the_default_registry() {
    let good = [locked("ours", "0.1.0", None), locked("serde", "1.0.0", Some(DEFAULT_REGISTRY))];
    assert_eq!(check_sources(&config(), &good), NONE);
    let bad = [
        locked("fork", "1.0.0", Some("git+https://example.org/fork#1")),
        locked("other", "1.0.0", Some("sparse+https://example.org/index/")),
    ];
    assert_eq!(
        check_sources(&config(), &bad),
        [
            "fork 1.0.0: comes from git+https://example.org/fork#1",
            "other 1.0.0: comes from sparse+https://example.org/index/",
        ]
    );
}

#[test]
fn a_package_in_two_versions_is_found() {
    let packages =
        [locked("a", "1.0.0", None), locked("b", "1.0.0", None), locked("a", "2.0.0", None)];
    assert_eq!(repeated(&packages), ["a 1.0.0 2.0.0"]);
}

#[test]
fn an_unsupported_setting_is_an_error() {
    let config = "[licenses]\nallow = []\nconfidence-threshold = 0.8\n[bans]\nmultiple-versions = \"warn\"\n\
                  wildcards = \"deny\"\ndeny = []\n[sources]\nunknown-registry = \"deny\"\nunknown-git = \"deny\"\n";
    let error = toml::from_str::<Config>(config).err().unwrap();
    assert!(error.to_string().contains("confidence-threshold"), "{error}");
}

#[test]
fn a_licence_file_is_accepted_while_it_is_unchanged() {
    assert_eq!(files::crc32(b"123456789"), 0xCBF4_3926);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("LICENSE.txt"), "123456789").unwrap();
    let manifest_path = folder.path().join("Cargo.toml");
    let package = [Package { manifest_path, ..package("file-only", None) }];
    let mut config = config();
    assert_eq!(check_licenses(&config, &package), ["file-only 1.0.0: has no licence"]);
    let clarify = |hash| Clarification {
        package: "file-only".to_owned(),
        expression: "MIT".to_owned(),
        license_files: vec![LicenseFile { path: "LICENSE.txt".to_owned(), hash }],
    };
    config.licenses.clarify = vec![clarify(0xCBF4_3926)];
    assert_eq!(check_licenses(&config, &package), NONE);
    config.licenses.clarify = vec![clarify(1)];
    assert_eq!(check_licenses(&config, &package).len(), 1);
}
