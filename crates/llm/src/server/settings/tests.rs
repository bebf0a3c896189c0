//! The headers of a call.

use super::parse_header;

#[test]
fn the_value_of_a_header_with_a_key_is_not_printed() {
    for (name, is_secret) in [("Authorization", true), ("Helicone-Auth", true), ("x-team", false)] {
        let (_, value) = parse_header(name, "abc").unwrap();
        assert_eq!(value.is_sensitive(), is_secret, "{name}");
        assert_eq!(format!("{value:?}").contains("abc"), !is_secret, "{name}");
    }
}
