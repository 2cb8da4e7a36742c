//! The opaque token that names one attempt, for whoever is to report on it.
//!
//! It carries the job, the attempt's number and a MAC under the installation's secret, so that it can be neither
//! guessed nor turned into another attempt's, and nothing has to be stored for it. Whether the attempt is still current
//! is not the token's business: the store's compare-and-set decides that.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::id::JobId;

const MAC_LEN: usize = 16;
const BODY_LEN: usize = 16 + 4;

/// One attempt of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptRef {
    /// The job.
    pub job_id: JobId,
    /// The attempt's number.
    pub attempt: u32,
}

/// Makes and checks attempt tokens. Its secret never shows in `Debug`.
#[derive(Clone)]
pub struct TokenKey([u8; 32]);

impl std::fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

impl TokenKey {
    /// From the installation's secret.
    pub const fn new(secret: [u8; 32]) -> Self {
        Self(secret)
    }

    /// The token of an attempt.
    pub fn sign(&self, attempt: AttemptRef) -> String {
        let mut bytes = [0u8; BODY_LEN + MAC_LEN];
        bytes[..16].copy_from_slice(attempt.job_id.as_uuid().as_bytes());
        bytes[16..BODY_LEN].copy_from_slice(&attempt.attempt.to_be_bytes());
        let mac = self.mac(&bytes[..BODY_LEN]);
        bytes[BODY_LEN..].copy_from_slice(&mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The attempt a token names, or `None` if this installation never made it.
    pub fn verify(&self, token: &str) -> Option<AttemptRef> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let bytes: [u8; BODY_LEN + MAC_LEN] = bytes.try_into().ok()?;
        let (body, mac) = bytes.split_at(BODY_LEN);
        if !bool::from(self.mac(body).as_slice().ct_eq(mac)) {
            return None;
        }
        let (id, attempt) = body.split_at(16);
        Some(AttemptRef {
            job_id: JobId::from_uuid(Uuid::from_slice(id).ok()?),
            attempt: u32::from_be_bytes(attempt.try_into().ok()?),
        })
    }

    fn mac(&self, body: &[u8]) -> [u8; MAC_LEN] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(body);
        let full = mac.finalize().into_bytes();
        let mut short = [0u8; MAC_LEN];
        short.copy_from_slice(&full[..MAC_LEN]);
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u32) -> AttemptRef {
        AttemptRef { job_id: JobId::from_uuid(Uuid::from_u128(7)), attempt: number }
    }

    #[test]
    fn a_token_names_its_attempt_and_nothing_else() {
        let key = TokenKey::new([1; 32]);
        let token = key.sign(attempt(3));
        assert_eq!(key.verify(&token), Some(attempt(3)));
        assert_ne!(token, key.sign(attempt(4)));
        assert_eq!(TokenKey::new([2; 32]).verify(&token), None);
    }

    #[test]
    fn a_token_with_any_character_changed_is_refused() {
        let key = TokenKey::new([1; 32]);
        let token = key.sign(attempt(3));
        for index in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[index] = if changed[index] == b'A' { b'B' } else { b'A' };
            assert_eq!(key.verify(&String::from_utf8(changed).unwrap()), None, "at {index}");
        }
        for text in ["", "x", "not a token", &token[1..]] {
            assert_eq!(key.verify(text), None);
        }
    }
}
