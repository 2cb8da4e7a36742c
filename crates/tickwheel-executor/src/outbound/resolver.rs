//! From a host's name to its addresses.
//!
//! A seam: the connector asks exactly once for each connection, and a test can answer in the operating system's place.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Finds the addresses of a host.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// The addresses, the preferred one first. May be empty.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Asks the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // The port plays no part in finding addresses.
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}
