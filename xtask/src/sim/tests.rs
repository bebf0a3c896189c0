//! The seeds of commits.

use super::first_seed;

#[test]
fn each_commit_has_its_own_seeds() {
    assert_eq!(first_seed("00000001deadbeef").unwrap(), 1 << 32);
    assert_eq!(first_seed("ffffffff").unwrap(), 0xffff_ffff << 32);
    assert!(first_seed("HEAD").is_err());
}
