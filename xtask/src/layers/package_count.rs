//! The number of packages below the core crate, which every store and every adapter compiles.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{Below, below};

const CORE: &str = "helix-agents-core";

/// The maximum number of packages, with the default features.
const MAX_PACKAGES: usize = 60;

/// Returns a complaint if there are too many packages.
pub(super) fn complaint() -> Result<Option<String>> {
    Ok(check(&below(CORE, &[])?))
}

pub(super) fn check(below: &[Below]) -> Option<String> {
    let names = below.iter().map(|package| package.name.as_str());
    let packages = names.filter(|name| *name != CORE).collect::<BTreeSet<_>>().len();
    (packages > MAX_PACKAGES).then(|| {
        format!(
            "{CORE}: has {packages} packages below it, and {MAX_PACKAGES} are permitted; see `cargo tree -p {CORE} -e normal`"
        )
    })
}
