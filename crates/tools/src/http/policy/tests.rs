//! Tests of allowed and rejected addresses.

use std::net::IpAddr;

use reqwest::Url;

use super::Policy;

fn policy(hosts: &[&str], private: &[&str]) -> Policy {
    let owned = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<_>>();
    Policy::new(&owned(hosts), &owned(private)).unwrap()
}

#[track_caller]
fn allowed(hosts: &[&str], url: &str) {
    policy(hosts, &[]).check(&Url::parse(url).unwrap()).unwrap();
}

#[track_caller]
fn refused(hosts: &[&str], url: &str, because: &str) {
    let problem = policy(hosts, &[]).check(&Url::parse(url).unwrap()).unwrap_err();
    assert!(problem.contains(because), "{url}: {problem}");
}

#[test]
fn hosts_are_compared_as_a_whole() {
    let hosts = ["api.example.com", "*.example.org", "bücher.example"];
    for url in [
        "https://api.example.com/a?b",
        "http://API.example.com/",
        "https://api.example.com:443/",
        "https://api.example.com./",
        "https://a.example.org/",
        "https://a.b.example.org/",
        "https://xn--bcher-kva.example/",
    ] {
        allowed(&hosts, url);
    }
    for url in [
        "https://example.com/",
        "https://xapi.example.com/",
        "https://api.example.com.evil.test/",
        "https://example.org/",
        "https://badexample.org/",
        "https://api.example.com:8443/",
        "http://api.example.com:443/",
    ] {
        refused(&hosts, url, "is not allowed; only these are: api.example.com, *.example.org");
    }
}

#[test]
fn a_port_is_part_of_a_host() {
    let hosts = ["a.test:8080", "b.test:443", "[::1]:9", "10.0.0.1"];
    for url in ["http://a.test:8080/", "https://b.test/", "http://[::1]:9/", "http://10.0.0.1/"] {
        allowed(&hosts, url);
    }
    for url in ["http://a.test/", "http://b.test/", "http://[::1]/", "http://10.0.0.1:81/"] {
        refused(&hosts, url, "is not allowed");
    }
}

#[test]
fn every_way_to_write_an_address_is_the_same_address() {
    for url in [
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
    ] {
        refused(&["example.com", "*.test"], url, "the host `127.0.0.1` is not allowed");
        allowed(&["127.0.0.1"], url);
    }
    refused(&["127.0.0.1"], "http://[::ffff:127.0.0.1]/", "is not allowed");
    refused(&["127.0.0.1"], "http://[::1]/", "is not allowed");
}

#[test]
fn only_plain_web_addresses_are_allowed() {
    refused(&["a.test"], "ftp://a.test/", "`ftp` URLs are not allowed");
    refused(&["a.test"], "file:///etc/passwd", "`file` URLs");
    refused(&["a.test"], "https://user:secret@a.test/", "user names and passwords");
    refused(&["a.test"], "https://a.test@b.test/", "user names and passwords");
}

#[test]
fn private_addresses_are_permitted_only_if_they_are_listed() {
    let none = policy(&["a.test", "localhost"], &[]);
    let some = policy(&["a.test"], &["10.0.0.0/8", "fd00::/8", "::1/128"]);
    let permits = |policy: &Policy, address: &str| {
        policy.permits("a.test", address.parse::<IpAddr>().unwrap())
    };
    for address in ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"] {
        assert!(permits(&none, address), "{address}");
    }
    for address in [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "ff02::1",
    ] {
        assert!(!permits(&none, address), "{address}");
    }
    for address in ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "::1"] {
        assert!(permits(&some, address), "{address}");
    }
    assert!(!permits(&some, "127.0.0.1"));
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    assert!(none.permits("localhost", loopback) && none.permits("LOCALHOST.", loopback));
    assert!(!none.permits("localhost", "10.0.0.1".parse().unwrap()));
    assert!(!none.permits("localhost.a.test", loopback));
}

#[test]
fn invalid_hosts_and_ranges_are_reported() {
    let hosts = [
        "http://a.test",
        "a.test/path",
        "a@b.test",
        "*",
        "*.*.test",
        "*.10.0.0.1",
        "a test",
        "",
        "a.test:99999",
        "a.test:",
        "[::1",
        "a*.test",
        "a.test?x",
        "..",
    ];
    for host in hosts {
        let problems = Policy::new(&[host.to_owned()], &[]).unwrap_err();
        assert!(problems[0].1.contains("is not a host; write it like"), "{host}");
    }
    let problems = Policy::new(&["a.test".to_owned()], &["10.0.0.1/40".to_owned()]).unwrap_err();
    assert_eq!(problems[0].0, "private/0");
    assert!(problems[0].1.contains("is not an address range"), "{problems:?}");
}
