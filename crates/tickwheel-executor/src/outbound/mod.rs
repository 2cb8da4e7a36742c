//! Requests that leave the house: who may be reached, how they are connected to, how they are signed.
//!
//! ```text
//!  request ──▶ client ──▶ connector ──▶ resolver (a name becomes addresses, once)
//!              (pool)        │
//!                            └──▶ guard (each address: allowed or refused) ──▶ connect to that very address
//! ```
//! Deliberately not here: redirects (never followed), proxies (the environment is not read), HTTP/2.

mod body;
mod callback;
mod client;
mod connector;
mod guard;
mod local_failure;
mod outgoing;
mod resolver;
mod signature;

pub use callback::{CallbackSenderOptions, WebhookCallbackSender};
pub use client::{OutboundClient, OutboundOptions};
pub use guard::AddressGuard;
pub use resolver::{Resolver, SystemResolver};
pub use signature::{SignatureHeaders, SigningSecret};

pub(crate) use body::{Captured, capture, excerpt, readable_text};
pub(crate) use client::parse_target;
pub(crate) use outgoing::Outgoing;

/// How the house introduces itself unless told otherwise.
pub(crate) const USER_AGENT: http::HeaderValue =
    http::HeaderValue::from_static(concat!("tickwheel/", env!("CARGO_PKG_VERSION")));
