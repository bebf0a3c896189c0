//! Tests of the tables of helix.toml.

use helix_agents::telemetry::Layout;

use super::*;
use crate::serve::runtime_kind::RuntimeKind;
use crate::telemetry_settings::{ContentSetting, ExporterKind, LayoutSetting};

#[test]
fn the_tables_are_read_next_to_the_providers() {
    let text = "default_provider = \"mine\"\n[serve]\nlisten = \"[::1]:9000\"\ntokens = \"t.toml\"\nhosts = [\"a.example\"]\n\
                grace = 5\nruntime = \"temporal\"\nengine = \"http://t\"\n[telemetry]\nexporter = \"langfuse\"\n\
                layout = \"session\"\nsample_ratio = 0.5\ncontent = \"recorded\"\n[providers.mine]\nmodel = \"small\"\n";
    let ConfigFile { serve, telemetry } = ConfigFile::parse(text).unwrap();
    assert_eq!(serve.listen, Some("[::1]:9000".parse().unwrap()));
    assert_eq!((serve.tokens, serve.grace), (Some("t.toml".into()), Some(5)));
    assert_eq!(serve.runtime, Some(RuntimeKind::Temporal));
    assert_eq!(serve.engine.as_deref(), Some("http://t"));
    assert_eq!((serve.hosts, serve.origins), (vec!["a.example".to_owned()], Vec::new()));
    let telemetry = telemetry.unwrap();
    assert_eq!(telemetry.exporter, ExporterKind::Langfuse);
    assert_eq!(telemetry.layout.map(Layout::from), Some(Layout::Session));
    assert_eq!(telemetry.layout, Some(LayoutSetting::Session));
    assert_eq!(telemetry.sample_ratio, Some(0.5));
    assert_eq!(telemetry.content, ContentSetting::Recorded);
    assert_eq!(ConfigFile::parse("").unwrap(), ConfigFile::default());
}

#[test]
fn an_empty_table_exports_over_otlp_without_content() {
    let telemetry = ConfigFile::parse("[telemetry]\n").unwrap().telemetry.unwrap();
    assert_eq!(telemetry.exporter, ExporterKind::Otlp);
    assert_eq!(telemetry.content, ContentSetting::None);
}

#[test]
fn an_unknown_key_and_a_wrong_value_name_their_line() {
    for text in [
        "\n[serve]\nport = 1\n",
        "\n[serve]\nlisten = \"nowhere\"\n",
        "\n[telemetry]\nurl = \"http://127.0.0.1\"\n",
        "\n[telemetry]\nexporter = \"jaeger\"\n",
        "\n[telemetry]\nsample_ratio = 2\n",
    ] {
        let error = ConfigFile::parse(text).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ConfigInvalid);
        assert!(error.message().starts_with("helix.toml, line 3: "), "{error}");
    }
}
