//! How a connection to the server is made, and what holds on every one of them.
//!
//! Connections are not encrypted (`NoTls`): use a local socket, a private network or a tunnel. They must reach the
//! server itself: a pooler that shares server connections between transactions would lose the locks that tell who is
//! alive.

use std::time::Duration;

use deadpool::managed::QueueMode;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tickwheel_core::ports::StoreResult;
use tokio_postgres::{Config, NoTls};

use super::PostgresOptions;
use super::error::no_connection;
use crate::error::aborted;

/// How long a new connection may take until it is usable.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After this time without an acknowledgement from the other host, a connection is given up: a cut cable says nothing.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// How long a transaction may wait for its next statement. Statements follow each other at once, so only a process that
/// stands still or is cut off takes longer; what its transaction has locked, others wait for. A second transaction of
/// the same process may have waited for the first one's locks, and gets them then: so the others may wait twice as
/// long.
const IDLE_IN_TRANSACTION_MAX: Duration = Duration::from_secs(1);

/// Defaults that the URL's own `options` may overrule.
///
/// Every statement of this store goes from a few keys to their rows, or along an index up to a limit. The planner's
/// statistics lag behind tables that fill and empty within seconds, so it is kept from other ideas, and from keeping a
/// plan that was right when a table was empty, but for the few statements of every job that have no other
/// ([`BEGIN_PLANNED`](super::pipeline::BEGIN_PLANNED)). The keepalives let the server notice a cut cable.
const SETTINGS: &str = "-c jit=off -c plan_cache_mode=force_custom_plan -c enable_seqscan=off -c enable_bitmapscan=off \
                        -c enable_hashjoin=off -c enable_mergejoin=off \
                        -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3";

/// What the statements are written for. Not to be overruled.
const RULES: &str = r"-c default_transaction_isolation=read\ committed -c default_transaction_read_only=off";

/// The configuration of every connection. `synchronous_commit` is left as the server has it.
pub(super) fn config(url: &str, options: &PostgresOptions) -> StoreResult<Config> {
    // The parser's words could repeat a part of the URL, and with it a password.
    let mut config: Config = url.parse().map_err(|_| aborted("the address of PostgreSQL is not valid"))?;
    let own = config.get_options().unwrap_or_default();
    let timeout_ms = options.statement_timeout.as_millis();
    let idle_ms = IDLE_IN_TRANSACTION_MAX.min(options.statement_timeout).as_millis();
    let all = format!(
        "{SETTINGS} -c statement_timeout={timeout_ms} -c idle_in_transaction_session_timeout={idle_ms} {own} {RULES}"
    );
    config.options(all);
    if config.get_application_name().is_none() {
        config.application_name("tickwheel");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    config.tcp_user_timeout(SILENCE_MAX);
    config.keepalives_idle(SILENCE_MAX / 2).keepalives_interval(Duration::from_secs(1)).keepalives_retries(5);
    Ok(config)
}

/// The pool for everything but sessions.
pub(super) fn pool(config: Config, options: &PostgresOptions) -> StoreResult<Pool> {
    let manager =
        Manager::from_config(config, NoTls, ManagerConfig { recycling_method: RecyclingMethod::Fast });
    Pool::builder(manager)
        .max_size(options.pool_size)
        // The connection that was used last: its server process has everything at hand, and the others are not woken.
        .queue_mode(QueueMode::Lifo)
        .wait_timeout(Some(options.pool_wait))
        .create_timeout(Some(CONNECT_TIMEOUT))
        .recycle_timeout(Some(CONNECT_TIMEOUT))
        .runtime(Runtime::Tokio1)
        .build()
        .map_err(no_connection)
}
