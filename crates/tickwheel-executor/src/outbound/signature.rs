//! Signatures after the Standard Webhooks specification: a receiver can tell that a request is ours, unchanged and
//! fresh.
//!
//! `webhook-signature: v1,<base64 of HMAC-SHA256 over "id.timestamp.body">`, keyed by what the secret says behind
//! `whsec_`. The secret never shows in `Debug`, errors or logs.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderValue};
use sha2::Sha256;
use tickwheel_core::Timestamp;

use crate::error::Error;

const PREFIX: &str = "whsec_";
/// The lengths the specification recommends.
const KEY_BYTES_MIN: usize = 24;
const KEY_BYTES_MAX: usize = 64;

/// Secrets are copied by hand, and padding gets lost on the way.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The key with which requests are signed.
#[derive(Clone)]
pub struct SigningSecret(Vec<u8>);

/// The three headers that carry a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureHeaders {
    /// `webhook-id`: the same for every delivery of the same message.
    pub id: String,
    /// `webhook-timestamp`: when it was sent, in seconds since the Unix epoch.
    pub timestamp: i64,
    /// `webhook-signature`.
    pub signature: String,
}

impl SigningSecret {
    /// Reads `whsec_` and 24 to 64 bytes in base64.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let encoded =
            text.trim().strip_prefix(PREFIX).ok_or(Error::InvalidSecret("it does not begin with whsec_"))?;
        let key =
            LENIENT.decode(encoded).map_err(|_| Error::InvalidSecret("what follows whsec_ is not base64"))?;
        match key.len() {
            0..KEY_BYTES_MIN => Err(Error::InvalidSecret("it is shorter than 24 bytes")),
            KEY_BYTES_MIN..=KEY_BYTES_MAX => Ok(Self(key)),
            _ => Err(Error::InvalidSecret("it is longer than 64 bytes")),
        }
    }

    /// Signs a body, which may come in pieces, as message `id`, sent at `now`.
    pub fn sign<'b>(
        &self,
        id: impl Into<String>,
        now: Timestamp,
        body: impl IntoIterator<Item = &'b [u8]>,
    ) -> SignatureHeaders {
        let id = id.into();
        let timestamp = now.as_millis().div_euclid(1000);
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        body.into_iter().for_each(|piece| mac.update(piece));
        let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        SignatureHeaders { id, timestamp, signature }
    }
}

impl SignatureHeaders {
    /// Puts them among the headers of a request, in the place of any of the same name.
    pub(crate) fn insert_into(self, headers: &mut HeaderMap) -> Result<(), Error> {
        let as_value = |text: String| {
            HeaderValue::try_from(text)
                .map_err(|_| Error::InvalidTarget("the message id cannot be a header".into()))
        };
        headers.insert("webhook-id", as_value(self.id)?);
        headers.insert("webhook-timestamp", HeaderValue::from(self.timestamp));
        headers.insert("webhook-signature", as_value(self.signature)?);
        Ok(())
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn a_signature_equals_the_published_one() {
        let signed = SigningSecret::parse(SECRET).unwrap().sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            Timestamp::from_millis(1_614_265_330_999),
            [&br#"{"test":"#[..], br#" 2432232314}"#],
        );
        assert_eq!(signed.timestamp, 1_614_265_330);
        assert_eq!(signed.signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "whsec_"),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_"),
            ("whsec_", "shorter"),
            ("whsec_!!!", "base64"),
            ("whsec_c2hvcnQ=", "shorter"),
            (&format!("whsec_{}", STANDARD.encode([7; 65])), "longer"),
        ] {
            let message = SigningSecret::parse(text).unwrap_err().to_string();
            assert!(message.contains(reason), "{text}: {message}");
        }
    }

    #[test]
    fn padding_may_be_missing() {
        let padded = format!("whsec_{}", STANDARD.encode([7; 25]));
        for text in [padded.as_str(), padded.trim_end_matches('=')] {
            assert_eq!(SigningSecret::parse(text).unwrap().0, [7; 25]);
        }
    }

    #[test]
    fn a_secret_never_shows() {
        let secret = SigningSecret::parse(SECRET).unwrap();
        assert_eq!(format!("{secret:?}"), "SigningSecret(…)");
    }
}
