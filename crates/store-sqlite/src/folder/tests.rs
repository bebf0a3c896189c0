//! Tests of the disk checks.

use std::path::Path;

use super::*;

#[test]
fn network_file_systems_are_known_by_their_numbers() {
    assert_eq!(name_of(0x6969), Some("NFS"));
    assert_eq!(name_of(0xff53_4d42), Some("CIFS"));
    assert_eq!(name_of(i128::from(0xff53_4d42_u32.cast_signed())), Some("CIFS"));
    // ext4 and procfs.
    assert_eq!(name_of(0xef53), None);
    assert_eq!(network_file_system(Path::new("/proc")), None);
}

#[test]
fn a_file_without_a_folder_is_in_the_current_one() {
    let here = Folder::of(Path::new("helix.db"));
    assert_eq!((here.path, here.exists, here.writable), (".".into(), true, true));
    assert!(here.free_bytes.is_some());
    let nowhere = Folder::of(Path::new("/nowhere/at/all.db"));
    assert_eq!((nowhere.exists, nowhere.writable, nowhere.free_bytes), (false, false, None));
}
