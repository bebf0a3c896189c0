//! The policy that decides which addresses may be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::Url;

/// IPv4 ranges that are not public: loopback, private networks, documentation, multicast.
const NOT_PUBLIC: [Ipv4Net; 15] = [
    Ipv4Net::new_assert(Ipv4Addr::new(0, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10),
    Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16),
    Ipv4Net::new_assert(Ipv4Addr::new(172, 16, 0, 0), 12),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 0, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 0, 2, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 88, 99, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 0, 0), 16),
    Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15),
    Ipv4Net::new_assert(Ipv4Addr::new(198, 51, 100, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(203, 0, 113, 0), 24),
    Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 4),
    Ipv4Net::new_assert(Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The IPv6 range of public addresses.
const PUBLIC: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// IPv6 ranges in [`PUBLIC`] that are not public: tunnels and other protocols, documentation.
const NOT_PUBLIC_6: [Ipv6Net; 4] = [
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    Ipv6Net::new_assert(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    Ipv6Net::new_assert(Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The NAT64 prefix: IPv6 addresses that a network translates to IPv4.
const TRANSLATED: Ipv6Net = Ipv6Net::new_assert(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The allowed hosts, and the private address ranges that they may resolve to.
#[derive(Debug, Clone)]
pub(super) struct Policy {
    hosts: Vec<Rule>,
    private: Vec<IpNet>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Name(String),
    /// All names with this suffix, which starts with a dot.
    Below(String),
    Address(IpAddr),
}

impl Policy {
    /// Parses the lists of hosts and private ranges. An error lists the setting and the problem of each invalid
    /// item.
    pub(super) fn new(hosts: &[String], private: &[String]) -> Result<Self, Vec<(String, String)>> {
        let mut problems = Vec::new();
        let mut policy = Self { hosts: Vec::new(), private: Vec::new() };
        for (index, text) in hosts.iter().enumerate() {
            match Rule::parse(text) {
                Some(rule) => policy.hosts.push(rule),
                None => problems.push((
                    format!("hosts/{index}"),
                    format!(
                        "`{text}` is not a host; write it like `api.example.com`, `*.example.org` or \
                         `127.0.0.1:8080`"
                    ),
                )),
            }
        }
        for (index, text) in private.iter().enumerate() {
            match text.parse::<IpNet>() {
                Ok(range) => policy.private.push(range),
                Err(_) => problems.push((
                    format!("private/{index}"),
                    format!("`{text}` is not an address range; write it like `10.0.0.0/8`"),
                )),
            }
        }
        if problems.is_empty() { Ok(policy) } else { Err(problems) }
    }

    /// Checks a URL before a request, except for the addresses that its name resolves to.
    pub(super) fn check(&self, url: &Url) -> Result<(), String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` URLs are not allowed; use https or http", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("user names and passwords in URLs are not allowed".to_owned());
        }
        if self.hosts.iter().any(|rule| rule.admits(url)) {
            return Ok(());
        }
        let host = url.host_str().unwrap_or_default();
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let allowed: Vec<_> = self.hosts.iter().map(ToString::to_string).collect();
        Err(format!(
            "the host `{host}{port}` is not allowed; only these are: {}",
            allowed.join(", ")
        ))
    }

    /// Returns `true` if the host of this name may resolve to this address.
    pub(super) fn permits(&self, name: &str, address: IpAddr) -> bool {
        is_public(address)
            || (is_this_machine(name) && address.is_loopback())
            || self.private.iter().any(|range| range.contains(&address.to_canonical()))
    }
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self { host: Host::Address(address), port: None });
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) if !text.ends_with(']') => (name, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let (below, name) = match name.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_bracketed = name.starts_with('[') && name.ends_with(']');
        let is_name = !name.split('.').any(str::is_empty) && name.chars().all(is_plain);
        if !is_bracketed && !is_name {
            return None;
        }
        // Parsed like the URLs of requests: lower case, `xn--`, and all notations of an IP address.
        let url = Url::parse(&format!("http://{name}/")).ok()?;
        let name = normal(url.host_str()?);
        let host = match (address(&name), below) {
            (None, true) => Host::Below(format!(".{name}")),
            (None, false) => Host::Name(name),
            (Some(address), false) => Host::Address(address),
            (Some(_), true) => return None,
        };
        Some(Self { host, port })
    }

    fn admits(&self, url: &Url) -> bool {
        let name = normal(url.host_str().unwrap_or_default());
        let address = address(&name);
        let is_host = match &self.host {
            Host::Name(known) => *known == name,
            Host::Below(end) => address.is_none() && name.len() > end.len() && name.ends_with(end),
            Host::Address(known) => address == Some(*known),
        };
        let is_port = match self.port {
            Some(port) => url.port_or_known_default() == Some(port),
            // The default port of the scheme.
            None => url.port().is_none(),
        };
        is_host && is_port
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}")?,
            Host::Below(end) => write!(f, "*{end}")?,
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Host::Address(address) => write!(f, "{address}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Normalizes a host name: lower case, without a trailing dot.
fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Parses a host that is an IP address.
fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_this_machine(name: &str) -> bool {
    normal(name) == "localhost"
}

/// Returns `true` if the address is on the public internet.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => !NOT_PUBLIC.iter().any(|range| range.contains(&address)),
        IpAddr::V6(address) if TRANSLATED.contains(&address) => {
            let [.., a, b, c, d] = address.octets();
            is_public(Ipv4Addr::new(a, b, c, d).into())
        }
        IpAddr::V6(address) => {
            PUBLIC.contains(&address) && !NOT_PUBLIC_6.iter().any(|range| range.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests;
