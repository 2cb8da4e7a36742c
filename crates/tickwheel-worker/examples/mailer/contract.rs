//! The contract: what both sides import. It knows nothing of the handler.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tickwheel_worker::{JobOptions, JobType};

#[derive(Serialize, Deserialize)]
pub struct SendEmail {
    pub to: String,
    pub subject: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub message_id: String,
}

impl JobType for SendEmail {
    const NAME: &'static str = "send_email";
    type Output = Receipt;
    fn options() -> JobOptions {
        JobOptions::default().queue("mail").max_retries(5).timeout(Duration::from_secs(30))
    }
}
