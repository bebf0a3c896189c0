//! Tests of the findings about models and providers.

use super::*;

fn provider(name: &str, error: Option<ErrorCode>, models: &[&str]) -> ProviderDiagnosis {
    ProviderDiagnosis {
        name: name.to_owned(),
        is_default: false,
        source: "helix.toml".to_owned(),
        base_url: None,
        api: None,
        default_model: None,
        key: "none",
        key_variable: None,
        responds: error.is_none(),
        error: error.map(|code| Error::new(code, "it failed").record()),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
        capabilities: Vec::new(),
    }
}

fn codes(model: &str, providers: Vec<ProviderDiagnosis>) -> Vec<(String, bool)> {
    let default_model =
        DefaultModel { name: model.to_owned(), source: "named explicitly".to_owned() };
    let diagnosis =
        ModelsDiagnosis { default_model: Some(default_model), providers, problems: Vec::new() };
    let findings = diagnosis.findings();
    findings.into_iter().map(|finding| (finding.code.to_string(), finding.is_problem())).collect()
}

#[test]
fn a_listed_model_has_no_findings() {
    assert_eq!(codes("good:small", vec![provider("good", None, &["small"])]), []);
}

#[test]
fn a_model_that_is_not_listed_is_advice() {
    let expected = [("model_not_listed".to_owned(), false)];
    assert_eq!(codes("good:large", vec![provider("good", None, &["small"])]), expected);
}

#[test]
fn an_error_is_a_problem_only_of_the_provider_of_the_default_model() {
    let gone = Some(ErrorCode::ProviderUnavailable);
    let providers = vec![provider("other", gone, &[]), provider("gone", gone, &[])];
    let unavailable = |is_problem: bool| ("provider_unavailable".to_owned(), is_problem);
    assert_eq!(codes("gone:x", providers), [unavailable(true), unavailable(false)]);
}

#[test]
fn a_server_that_cannot_list_its_models_is_advice() {
    let listless = provider("listless", Some(ErrorCode::Unsupported), &[]);
    assert_eq!(codes("listless:x", vec![listless]), [("unsupported".to_owned(), false)]);
}

#[test]
fn an_invalid_configuration_is_a_problem() {
    let error = Error::new(ErrorCode::ConfigInvalid, "helix.toml, line 3: unknown key");
    let file = ConfigFileState { path: "helix.toml".into(), found: true };
    let diagnosis = ConfigDiagnosis { file, error: Some(error.record()), registry: None };
    let [finding] = &diagnosis.findings()[..] else { panic!("one finding") };
    assert!(finding.is_problem() && finding.remedy.contains("helix.toml"), "{finding:?}");
}

#[test]
fn the_remedy_names_what_to_change() {
    let failed = |code| provider("p", Some(code), &[]);
    let remedy = |provider: &ProviderDiagnosis| {
        provider.finding(Severity::Problem).unwrap().remedy.into_owned()
    };
    let mut refused = failed(ErrorCode::ProviderUnauthorized);
    assert!(remedy(&refused).contains("`api_key_env`"));
    refused.key_variable = Some("P_KEY".to_owned());
    assert_eq!(remedy(&refused), "set P_KEY to a key of the provider");
    refused.key = "set";
    assert!(remedy(&refused).starts_with("check the key or token in P_KEY: "));
    let mut expired = failed(ErrorCode::ProviderCredentialsExpired);
    expired.key = "set";
    assert_eq!(remedy(&expired), "get a new key or token of the provider");
    expired.key_variable = Some("P_KEY".to_owned());
    assert_eq!(remedy(&expired), "get a new key or token, and set P_KEY to it");
    expired.key_variable = Some("AWS_ACCESS_KEY_ID".to_owned());
    assert_eq!(
        remedy(&expired),
        "get new AWS credentials, and set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    );

    let elsewhere = failed(ErrorCode::ProviderRegionUnsupported);
    assert!(remedy(&elsewhere).starts_with("change the region"));

    let mut gone = failed(ErrorCode::ProviderUnavailable);
    gone.base_url = Some("https://models.example.com/v1".to_owned());
    assert!(remedy(&gone).starts_with("check the network"));
    for url in
        ["http://127.0.0.1:8080/v1", "http://[::1]:8080/v1", "http://[::1]/v1", "http://localhost"]
    {
        gone.base_url = Some(url.to_owned());
        let expected = "start the server, or correct its URL (`base_url` in helix.toml)";
        assert_eq!(remedy(&gone), expected, "{url}");
    }
    gone.name = "anthropic".to_owned();
    let place = "(ANTHROPIC_BASE_URL, or `base_url` in helix.toml)";
    assert!(remedy(&gone).ends_with(place), "{}", remedy(&gone));

    let mut wrong_url = failed(ErrorCode::Unsupported);
    assert!(remedy(&wrong_url).ends_with("which usually ends in `/v1`"));
    wrong_url.api = Some("gemini_generate");
    assert!(remedy(&wrong_url).ends_with("which usually ends in `/v1beta`"));
}
