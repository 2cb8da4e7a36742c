//! The other side: submits a job and waits for its result.

use std::time::Duration;

use tickwheel_worker::client::{Client, Error};

use crate::contract::{Receipt, SendEmail};

pub async fn submit(to: &str) -> Result<(), Error> {
    let client = Client::from_env()?;
    let email = SendEmail { to: to.into(), subject: "Hello".into() };
    let handle = client.submit(email).await?;
    println!("submitted {}", handle.id());
    let receipt: Receipt = handle.wait(Duration::from_secs(60)).await?;
    println!("sent as {}", receipt.message_id);
    Ok(())
}
