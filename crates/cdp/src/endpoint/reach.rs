//! Tries every address of an endpoint until one is a browser.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{sleep, timeout};

use super::reason::{ConnectError, Reason};
use super::{Endpoint, Host, Way, discover};
use crate::connection::socket::{self, Socket};
use crate::connection::{CdpSession, Events};

/// For one address, from the first packet to the open WebSocket; also for a name to be resolved.
const PATIENCE: Duration = Duration::from_secs(2);
/// One that is slow to answer does not hold up the next for longer.
const STAGGER: Duration = Duration::from_millis(150);
/// A name may have many addresses; a browser is at one of the first.
const ADDRESSES: usize = 8;
/// A silent connection is probed after this long, so that a machine that vanished is noticed.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// An open connection to a browser.
#[derive(Debug)]
pub struct Connected {
    /// The browser's own session. [`CdpSession::close`] only detaches.
    pub session: CdpSession,
    /// Its events.
    pub events: Events,
    /// The address that answered.
    pub address: SocketAddr,
}

impl Endpoint {
    /// Connects to the first address that is a browser. It takes about two seconds at most.
    pub async fn connect(&self) -> Result<Connected, ConnectError> {
        let failed = |tried| ConnectError::new(self.to_string(), tried);
        let addresses = self.addresses().await.map_err(|tried| failed(vec![tried]))?;
        let mut waiting = addresses.into_iter();
        let mut running = FuturesUnordered::new();
        let mut tried = Vec::new();
        running.extend(waiting.next().map(|address| self.attempt(address)));
        while !running.is_empty() {
            tokio::select! {
                Some((address, outcome)) = running.next() => match outcome {
                    Ok(socket) => {
                        let (session, events) = socket::connect(socket, crate::MESSAGE_LIMIT);
                        return Ok(Connected { session, events, address });
                    }
                    Err(reason) => {
                        tried.push((address.to_string(), reason));
                        running.extend(waiting.next().map(|address| self.attempt(address)));
                    }
                },
                () = sleep(STAGGER), if waiting.len() > 0 => {
                    running.extend(waiting.next().map(|address| self.attempt(address)));
                }
            }
        }
        Err(failed(tried))
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, (String, Reason)> {
        let port = self.port;
        let name = match &self.host {
            Host::Local => {
                let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
                return Ok(loopback.map(|address| SocketAddr::new(address, port)).to_vec());
            }
            Host::Address(address) => return Ok(vec![SocketAddr::new(*address, port)]),
            Host::Name(name) => name,
        };
        let mut addresses: Vec<SocketAddr> = match timeout(PATIENCE, lookup_host((name.as_str(), port))).await
        {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(_)) => Vec::new(),
            Err(_) => return Err((name.clone(), Reason::TimedOut)),
        };
        let mut seen = std::collections::HashSet::new();
        addresses.retain(|address| seen.insert(address.ip()));
        addresses.truncate(ADDRESSES);
        if addresses.is_empty() { Err((name.clone(), Reason::Unresolved)) } else { Ok(addresses) }
    }

    async fn attempt(&self, address: SocketAddr) -> (SocketAddr, Result<Socket, Reason>) {
        let outcome = timeout(PATIENCE, self.open(address)).await.unwrap_or(Err(Reason::TimedOut));
        (address, outcome)
    }

    async fn open(&self, address: SocketAddr) -> Result<Socket, Reason> {
        let host = host_header(address.ip(), address.port());
        let authorization = self.authorization.as_deref();
        let path = match &self.way {
            Way::WebSocket(path) => path.clone(),
            Way::Ask(path) => {
                let request = discover::Request { host: &host, path, authorization };
                discover::web_socket_path(stream(address).await?, &request).await?
            }
        };
        // Whatever host the browser names, it is the one that answered.
        Ok(socket::open(stream(address).await?, &host, &path, authorization).await?)
    }
}

async fn stream(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

/// An address and a port as a `Host` header has them.
pub(super) fn host_header(address: IpAddr, port: u16) -> String {
    match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    }
}
