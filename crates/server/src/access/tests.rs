//! Hosts, origins and cookies of requests.

use http::{Method, Request};

use super::AccessRules;

fn rules() -> AccessRules {
    AccessRules {
        hosts: ["api.example.com".to_owned()].into(),
        origins: ["https://app.example.com".to_owned()].into(),
        ..AccessRules::default()
    }
}

#[track_caller]
fn check(rules: &AccessRules, method: Method, headers: &[(&str, &str)], is_accepted: bool) {
    let mut request = Request::builder().method(method).uri("/start");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    assert_eq!(rules.check(&parts).is_ok(), is_accepted, "{headers:?}");
}

#[test]
fn only_known_hosts_are_accepted() {
    for host in
        ["localhost:8080", "127.0.0.1", "[::1]:80", "API.example.com", "api.example.com:443"]
    {
        check(&rules(), Method::POST, &[("host", host)], true);
    }
    for host in ["example.com", "api.example.com.evil.com", "evil.com:80", "", "[::2]:80"] {
        check(&rules(), Method::GET, &[("host", host)], false);
    }
    check(&rules(), Method::GET, &[], false);
    check(&rules(), Method::GET, &[("host", "localhost"), ("host", "localhost")], false);
    let any = AccessRules { accepts_any_host: true, ..rules() };
    check(&any, Method::GET, &[("host", "10.1.2.3")], true);
}

#[test]
fn only_pages_of_known_origins_are_accepted() {
    let host = ("host", "api.example.com");
    let check = |origin, is_accepted| {
        check(&rules(), Method::POST, &[host, ("origin", origin)], is_accepted);
    };
    check("https://app.example.com", true);
    check("https://api.example.com", true);
    check("http://api.example.com", true);
    check("https://evil.com", false);
    check("https://api.example.com:8443", false);
    check("http://app.example.com", false);
    check("null", false);
}

#[test]
fn a_change_by_cookie_states_where_it_comes_from() {
    let (host, cookie) = (("host", "localhost"), ("cookie", "id=1"));
    let site = |site| ("sec-fetch-site", site);
    check(&rules(), Method::POST, &[host, cookie], false);
    check(&rules(), Method::POST, &[host, cookie, site("cross-site")], false);
    check(&rules(), Method::POST, &[host, cookie, site("same-origin")], true);
    check(&rules(), Method::POST, &[host, cookie, ("authorization", "Bearer x")], true);
    check(&rules(), Method::GET, &[host, cookie], true);
    check(&rules(), Method::GET, &[host, cookie, site("cross-site")], false);
    check(&rules(), Method::DELETE, &[host, cookie, ("origin", "http://localhost")], true);
}

#[test]
fn a_page_of_another_site_cannot_embed_a_response() {
    let host = ("host", "localhost");
    let site = |site| ("sec-fetch-site", site);
    for method in [Method::GET, Method::POST] {
        check(&rules(), method.clone(), &[host, site("cross-site")], false);
        // Another port of this machine is the same site.
        check(&rules(), method.clone(), &[host, site("same-site")], false);
        check(&rules(), method.clone(), &[host, site("same-origin")], true);
        check(&rules(), method.clone(), &[host, site("none")], true);
        check(&rules(), method.clone(), &[host], true);
        let with_token = [host, site("cross-site"), ("authorization", "Bearer x")];
        check(&rules(), method.clone(), &with_token, true);
        let listed = [host, site("cross-site"), ("origin", "https://app.example.com")];
        check(&rules(), method, &listed, true);
    }
}
