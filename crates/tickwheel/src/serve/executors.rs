//! What calls HTTP targets, as configured. A server and a worker have the same.

use std::net::SocketAddr;
use std::sync::Arc;

use tickwheel_core::ports::Clock;
use tickwheel_executor::executor::{HttpExecutor, HttpExecutorOptions};
use tickwheel_executor::outbound::{AddressGuard, OutboundClient, OutboundOptions};

use crate::config::Config;

/// Which addresses jobs may call: as configured, and the demo's endpoint.
pub fn address_guard(config: &Config, demo: Option<SocketAddr>) -> AddressGuard {
    let guard = if config.http.allow_private_targets {
        AddressGuard::allow_private()
    } else {
        AddressGuard::public_only()
    };
    demo.into_iter().fold(guard, AddressGuard::with_exception)
}

/// The way out.
pub fn outbound(config: &Config, guard: AddressGuard) -> OutboundClient {
    OutboundClient::new(OutboundOptions {
        idle_per_host_max: config.engine.slots,
        ..OutboundOptions::guarded_by(guard)
    })
}

/// What calls HTTP targets. It signs with the secret of this machine's configuration.
pub fn http(config: &Config, outbound: OutboundClient, clock: Arc<dyn Clock>) -> HttpExecutor {
    HttpExecutor::new(HttpExecutorOptions {
        signing: config.http.signing_secret.clone(),
        response_bytes_max: config.http.response_bytes_max,
        ..HttpExecutorOptions::new(outbound, clock)
    })
}
