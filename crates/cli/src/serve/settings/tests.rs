//! Tests of the table `[serve]`.

use super::*;

#[test]
fn the_table_is_read_next_to_the_providers() {
    let text = "default_provider = \"mine\"\n[serve]\nlisten = \"[::1]:9000\"\ntokens = \"t.toml\"\nhosts = [\"a.example\"]\n\
                grace = 5\nruntime = \"temporal\"\nengine = \"http://t\"\n[providers.mine]\nmodel = \"small\"\n";
    let settings = ServeSettings::parse(text).unwrap();
    assert_eq!(settings.listen, Some("[::1]:9000".parse().unwrap()));
    assert_eq!((settings.tokens, settings.grace), (Some("t.toml".into()), Some(5)));
    assert_eq!(settings.runtime, Some(RuntimeKind::Temporal));
    assert_eq!(settings.engine.as_deref(), Some("http://t"));
    assert_eq!((settings.hosts, settings.origins), (vec!["a.example".to_owned()], Vec::new()));
    assert_eq!(ServeSettings::parse("").unwrap(), ServeSettings::default());
}

#[test]
fn an_unknown_key_and_a_wrong_address_name_their_line() {
    for text in ["\n[serve]\nport = 1\n", "\n[serve]\nlisten = \"nowhere\"\n"] {
        let error = ServeSettings::parse(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        assert!(error.message().starts_with("helix.toml, line 3: "), "{error}");
    }
}
