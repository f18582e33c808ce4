//! Where a browser that somebody else runs is reached, and how it is asked for its WebSocket.
//!
//! Names are resolved here and addresses are what travels, because Chromium refuses a `Host` that is neither an
//! address nor `localhost`. No proxy is ever used. Credentials, tokens and paths of the address appear nowhere:
//! what is shown of an [`Endpoint`] is its scheme, host and port.

mod discover;
mod reach;
mod reason;

use std::fmt;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use url::Url;

pub use reach::Connected;
pub use reason::ConnectError;

/// The forms of an address, for messages about one that is none.
const FORMS: &str = "give a port (9222), host:port, http://host:port or ws://host:port/devtools/browser/ID";

/// The address of a browser's debugging interface.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    given: String,
    host: Host,
    port: u16,
    way: Way,
    /// The value of an `Authorization` header.
    authorization: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
enum Host {
    /// This machine, whatever its resolver says of `localhost`.
    Local,
    Address(IpAddr),
    Name(String),
}

#[derive(Clone, PartialEq, Eq)]
enum Way {
    /// This path tells the address of the WebSocket.
    Ask(String),
    /// This path is the WebSocket.
    WebSocket(String),
}

impl Endpoint {
    /// Reads a port, `host:port`, or an `http:` or `ws:` address. The error repeats nothing of it.
    pub fn parse(given: &str) -> Result<Self, String> {
        let given = given.trim();
        let address = match given {
            port if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
                format!("http://localhost:{port}")
            }
            url if url.contains("://") => url.to_owned(),
            host if has_port(host) => format!("http://{host}"),
            _ => return Err(format!("there is no port in it; {FORMS}")),
        };
        let url = Url::parse(&address).map_err(|reason| format!("{reason}; {FORMS}"))?;
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(format!("there is no host or no port in it; {FORMS}"));
        };
        if port == 0 {
            return Err(format!("port 0 is no port to connect to; {FORMS}"));
        }
        Ok(Self {
            given: given.to_owned(),
            host: Host::of(&host),
            port,
            way: Way::of(&url)?,
            authorization: authorization(&url),
        })
    }

    /// The address as it was given, secrets included: to be passed on, never to be shown.
    pub fn secret(&self) -> &str {
        &self.given
    }
}

fn has_port(host: &str) -> bool {
    let authority = host.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

impl Host {
    fn of(host: &url::Host<&str>) -> Self {
        match *host {
            url::Host::Domain("localhost" | "localhost.") => Self::Local,
            url::Host::Domain(name) => Self::Name(name.to_owned()),
            url::Host::Ipv4(address) => Self::Address(address.into()),
            url::Host::Ipv6(address) => Self::Address(address.into()),
        }
    }
}

impl Way {
    fn of(url: &Url) -> Result<Self, String> {
        match url.scheme() {
            "ws" if url.path().contains("/devtools/page/") => {
                Err("that is the address of one page; give the browser's, or http://host:port".into())
            }
            "ws" => Ok(Self::WebSocket(path_and_query(url))),
            "http" => {
                let path = url.path().trim_end_matches('/');
                let known = ["/json/version", "/json/list", "/json"];
                let base = known.iter().find_map(|known| path.strip_suffix(known)).unwrap_or(path);
                let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
                Ok(Self::Ask(format!("{base}/json/version{query}")))
            }
            "https" | "wss" => Err(
                "TLS is not spoken here; use http: or ws:, through a tunnel (ssh -L) where it must be safe"
                    .into(),
            ),
            _ => Err(format!("this kind of address is not known; {FORMS}")),
        }
    }
}

fn path_and_query(url: &Url) -> String {
    url[url::Position::BeforePath..url::Position::AfterQuery].to_owned()
}

fn authorization(url: &Url) -> Option<String> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let mut plain: Vec<u8> = percent_decode_str(url.username()).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(url.password().unwrap_or_default()));
    Some(format!("Basic {}", data_encoding::BASE64.encode(&plain)))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.way {
            Way::Ask(_) => "http",
            Way::WebSocket(_) => "ws",
        };
        let port = self.port;
        match &self.host {
            Host::Local => write!(f, "{scheme}://localhost:{port}"),
            Host::Name(name) => write!(f, "{scheme}://{name}:{port}"),
            Host::Address(address) => write!(f, "{scheme}://{}", reach::host_header(*address, port)),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

#[cfg(test)]
mod tests;
