//! What a server may be called that has no token, so that only programs of its machine get answers. Browsers there run pages of other
//! sites too, and the name of a site can lead to this machine: what the request says of both tells.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Uri};

use crate::Error;

/// What it may be called beside `localhost` and the addresses of this machine.
#[derive(Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Takes names.
    ///
    /// # Errors
    /// What cannot be the name of a host, or says more.
    pub fn new(names: Vec<String>) -> Result<Self, Error> {
        match names.iter().find(|name| named(name.as_bytes()).as_ref() != Some(name)) {
            Some(wrong) => Err(Error::Option(format!(
                "--allow-host \"{wrong}\" is no name of a host; expected one without scheme and port, such as models.example.org"
            ))),
            None => Ok(Self(names)),
        }
    }

    /// Says why a request gets no answer that does not ask this machine, or that a page of another one sends.
    pub fn problem(&self, headers: &HeaderMap) -> Option<String> {
        let mut sent = headers.iter().filter(|(header, _)| [HOST, ORIGIN].contains(header));
        let (header, value) = sent.find(|(_, value)| !self.has(value))?;
        Some(format!(
            "the header {header} is \"{}\", which is no name of this machine",
            String::from_utf8_lossy(value.as_bytes())
        ))
    }

    fn has(&self, value: &HeaderValue) -> bool {
        named(value.as_bytes()).is_some_and(|name| {
            let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
            address.is_ok_and(|address| address.to_canonical().is_loopback())
                || name.eq_ignore_ascii_case("localhost")
                || self.0.iter().any(|known| name.eq_ignore_ascii_case(known))
        })
    }
}

/// Returns the name of a host, without scheme and port. That of a page that comes from a file is `null`.
fn named(value: &[u8]) -> Option<String> {
    Uri::try_from(value).ok()?.host().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    #[test]
    fn other_sites_get_no_answers() {
        let hosts = Hosts::new(vec!["models.example.org".to_owned()]).unwrap();
        let is_let_in = |sent: &[(_, &str)]| {
            let sent = sent.iter().map(|(header, value)| (HeaderName::clone(header), value.parse().unwrap()));
            hosts.problem(&sent.collect()).is_none()
        };
        assert!(is_let_in(&[]), "requests of HTTP/1.0 name no host");
        for host in [
            "localhost",
            "LocalHost:8080",
            "127.0.0.1:8080",
            "127.8.9.1",
            "[::1]",
            "[::1]:8080",
            "Models.Example.org:80",
        ] {
            assert!(is_let_in(&[(HOST, host)]), "{host}");
            let origin = format!("http://{host}");
            assert!(is_let_in(&[(HOST, "localhost"), (ORIGIN, &origin)]), "{origin}");
        }
        for host in [
            "example.org",
            "example.org:8080",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "10.0.0.1",
            "[::2]:80",
            "",
        ] {
            assert!(!is_let_in(&[(HOST, host)]), "{host}");
            assert!(!is_let_in(&[(HOST, "localhost"), (ORIGIN, &format!("https://{host}"))]), "{host}");
        }
        assert!(!is_let_in(&[(HOST, "localhost"), (ORIGIN, "null")]));
        assert!(!is_let_in(&[(HOST, "localhost"), (HOST, "example.org")]));
    }

    #[test]
    fn names_of_hosts_are_no_addresses_of_pages() {
        for wrong in ["http://example.org", "example.org:80", "", "a b", "/"] {
            assert!(Hosts::new(vec![wrong.to_owned()]).is_err(), "{wrong}");
        }
        assert!(Hosts::new(vec!["null".to_owned(), "[2001:db8::1]".to_owned()]).is_ok());
    }
}
