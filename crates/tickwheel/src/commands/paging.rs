//! Follows the pages of a list until there is enough of it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickwheel_protocol::page::LIMIT_MAX;

use super::Session;
use crate::failure::Failure;
use crate::output::{Output, pretty};

/// A list to ask for.
pub struct Listing<'a> {
    /// Where it is.
    pub path: &'a [&'a str],
    /// What to look for; parameters without a value are left out.
    pub filters: &'a [(&'a str, Option<String>)],
    /// How many items are enough; `None` asks for all, in pages of the server's choice.
    pub items_max: Option<usize>,
}

/// As much of a list as was asked for, item by item as the server wrote it.
#[derive(Serialize)]
pub struct Found {
    items: Vec<Box<RawValue>>,
    /// There is more than was asked for.
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl Listing<'_> {
    /// Asks for page after page. A page may be short, or even empty, and still not be the last.
    pub async fn fetch(&self, session: &Session) -> Result<Found, Failure> {
        let mut found = Found { items: Vec::new(), next_cursor: None };
        loop {
            let wanted = self.items_max.map(|max| (max - found.items.len()).min(LIMIT_MAX));
            let mut call = session.client.get(self.path);
            for (name, value) in self.filters {
                call = call.query(name, value.as_deref());
            }
            let call = call
                .query("limit", wanted.map(|wanted| wanted.to_string()).as_deref())
                .query("cursor", found.next_cursor.as_deref());
            let page: Page = call.send().await?.read()?;
            found.items.extend(page.items);
            found.next_cursor = page.next_cursor;
            let enough = self.items_max.is_some_and(|max| found.items.len() >= max);
            if enough || found.next_cursor.is_none() {
                return Ok(found);
            }
        }
    }
}

impl Found {
    /// The items.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, Failure> {
        let read = |item: &RawValue| serde_json::from_str(item.get()).map_err(anyhow::Error::from);
        Ok(self.items.iter().map(|item| read(item)).collect::<Result<_, _>>()?)
    }

    /// Prints the list: JSON for machines, else what `table` makes of the items, or `nothing` if there are none.
    pub fn print<T: DeserializeOwned>(
        &self,
        output: &Output,
        nothing: &str,
        table: impl FnOnce(&[T]) -> String,
    ) -> Result<(), Failure> {
        if output.json {
            let text = serde_json::to_string(self).map_err(anyhow::Error::from)?;
            return Ok(output.print(&pretty(&text))?);
        }
        if self.items.is_empty() {
            output.note(nothing);
            return Ok(());
        }
        output.print(&table(&self.read()?))?;
        if self.next_cursor.is_some() {
            output.note("there are more; ask for them with --limit");
        }
        Ok(())
    }
}
