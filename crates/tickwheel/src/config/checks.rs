//! Settings that are fine alone and wrong together.

use super::Config;

/// Two or more settings that do not go together.
pub struct Contradiction {
    /// The settings; the first is the one to look at.
    pub keys: &'static [&'static str],
    /// What is wrong.
    pub message: String,
}

/// Everything in `config` that does not go together.
pub fn contradictions(config: &Config) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let mut expect = |holds: bool, keys: &'static [&'static str], message: &str| {
        if !holds {
            found.push(Contradiction { keys, message: message.to_owned() });
        }
    };
    expect(
        config.server.listen.ip().is_loopback() || config.server.allow_open_access,
        &["server.listen", "server.allow_open_access"],
        "whoever reaches this address could submit jobs, because no key is configured; listen on loopback, \
         or set server.allow_open_access (--allow-open-access) if a proxy or a firewall guards it",
    );
    expect(
        config.engine.near_window >= config.engine.sweep_interval,
        &["engine.near_window", "engine.sweep_interval"],
        "must not be shorter than engine.sweep_interval, or jobs are loaded after their time",
    );
    expect(
        config.limits.batch_bytes_max >= config.limits.body_bytes_max,
        &["limits.batch_bytes_max", "limits.body_bytes_max"],
        "must not be smaller than limits.body_bytes_max",
    );
    expect(
        config.limits.body_bytes_max >= config.limits.payload_bytes_max,
        &["limits.payload_bytes_max", "limits.body_bytes_max"],
        "must not be larger than limits.body_bytes_max: no request could carry it",
    );
    expect(
        config.limits.bodies_bytes_max / 2 >= config.limits.batch_bytes_max,
        &["limits.bodies_bytes_max", "limits.batch_bytes_max"],
        "must be at least twice limits.batch_bytes_max, or a large batch finds no room",
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(config: &Config) -> Vec<&'static str> {
        contradictions(config).iter().map(|contradiction| contradiction.keys[0]).collect()
    }

    #[test]
    fn the_defaults_go_together() {
        assert!(keys(&Config::default()).is_empty());
    }

    #[test]
    fn an_address_beyond_loopback_needs_an_explicit_word() {
        let mut config = Config::default();
        config.server.listen = "0.0.0.0:7180".parse().unwrap();
        assert_eq!(keys(&config), ["server.listen"]);
        config.server.allow_open_access = true;
        assert!(keys(&config).is_empty());
    }

    #[test]
    fn a_payload_has_to_fit_into_a_body_and_a_body_into_a_batch() {
        let mut config = Config::default();
        config.limits.body_bytes_max = 4096;
        assert_eq!(keys(&config), ["limits.payload_bytes_max"]);
        config.limits.payload_bytes_max = 1024;
        config.limits.bodies_bytes_max = 16 << 20;
        assert_eq!(keys(&config), ["limits.bodies_bytes_max"]);
        config.limits.batch_bytes_max = 2048;
        assert_eq!(keys(&config), ["limits.batch_bytes_max"]);
    }
}
