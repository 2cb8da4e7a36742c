//! Follows the pages of a list until there is enough of it, and shows them as they come.

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickwheel_protocol::page::LIMIT_MAX;

use super::CommandContext;
use crate::cli::whole;
use crate::failure::CommandError;
use crate::output::{Layout, Table, pretty};

/// How much of a list to show, and from where on.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// How many at the most
    #[arg(long, value_name = "N", default_value = "50", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    limit: u32,
    /// All of them, however many there are
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Go on where an earlier list ended: what it said to go on with, or its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// A list to ask for.
pub struct Listing<'a> {
    /// Where it is.
    pub path: &'a [&'a str],
    /// What to look for; parameters without a value are left out.
    pub filters: &'a [(&'a str, Option<String>)],
    /// How much of it; `None` asks for all, in pages of the server's choice.
    pub part: Option<&'a PageArgs>,
}

/// A page, item by item as the server wrote it.
#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
}

impl Page {
    fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, CommandError> {
        let read = |item: &RawValue| serde_json::from_str(item.get()).map_err(anyhow::Error::from);
        Ok(self.items.iter().map(|item| read(item)).collect::<Result<_, _>>()?)
    }
}

/// The pages of a list, one after the other.
pub struct Pages<'a> {
    listing: &'a Listing<'a>,
    context: &'a CommandContext,
    /// So many items are still wanted; `None`: all there are.
    left: Option<usize>,
    /// Asks for this many at once; `None`: as many as the server likes.
    page_max: Option<usize>,
    cursor: Option<String>,
    is_over: bool,
}

impl Pages<'_> {
    /// The next page. It may be short, or even empty, and still not be the last.
    async fn next(&mut self) -> Result<Option<Page>, CommandError> {
        if self.is_over {
            return Ok(None);
        }
        let wanted = self.left.map(|left| left.min(LIMIT_MAX)).or(self.page_max);
        let mut call = self.context.client.get(self.listing.path);
        for (name, value) in self.listing.filters {
            call = call.query(name, value.as_deref());
        }
        let call = call
            .query("limit", wanted.map(|wanted| wanted.to_string()).as_deref())
            .query("cursor", self.cursor.as_deref());
        let page: Page = call.send().await?.read()?;
        self.left = self.left.map(|left| left.saturating_sub(page.items.len()));
        self.cursor.clone_from(&page.next_cursor);
        self.is_over = self.cursor.is_none() || self.left == Some(0);
        Ok(Some(page))
    }

    /// The items of the next page.
    pub async fn items<T: DeserializeOwned>(&mut self) -> Result<Option<Vec<T>>, CommandError> {
        self.next().await?.map(|page| page.read()).transpose()
    }
}

impl<'a> Listing<'a> {
    /// Its pages.
    pub fn pages(&'a self, context: &'a CommandContext) -> Pages<'a> {
        let left = self.part.filter(|part| !part.all).map(|part| part.limit as usize);
        let page_max = self.part.map(|_| LIMIT_MAX);
        let cursor = self.part.and_then(|part| part.cursor.clone());
        Pages { listing: self, context, left, page_max, cursor, is_over: false }
    }

    /// Its pages, as large as they can be, for whoever reads many.
    pub fn large_pages(&'a self, context: &'a CommandContext) -> Pages<'a> {
        Pages { page_max: Some(LIMIT_MAX), ..self.pages(context) }
    }

    /// All of its items, held together.
    pub async fn read<T: DeserializeOwned>(&self, context: &CommandContext) -> Result<Vec<T>, CommandError> {
        let (mut pages, mut items) = (self.pages(context), Vec::new());
        while let Some(page) = pages.items().await? {
            items.extend(page);
        }
        Ok(items)
    }

    /// Prints the list page by page: JSON for machines, else what `table` makes of the items, or `nothing` if there are none.
    pub async fn show<T: DeserializeOwned>(
        &self,
        context: &CommandContext,
        nothing: &str,
        mut table: impl FnMut(&[T]) -> Table,
    ) -> Result<(), CommandError> {
        if context.output.json {
            return self.show_json(context).await;
        }
        let mut pages = self.pages(context);
        let mut layout: Option<Layout> = None;
        while let Some(items) = pages.items().await? {
            if items.is_empty() {
                continue;
            }
            let table = table(&items);
            match &layout {
                Some(layout) => context.output.print(&table.rest(layout))?,
                None => {
                    context.output.print(&table.finish())?;
                    layout = Some(table.layout());
                }
            }
        }
        if layout.is_none() {
            context.output.note(nothing);
        }
        if let Some(cursor) = &pages.cursor {
            context
                .output
                .note(&format!("there are more: see them with --all, or go on with --cursor {cursor}"));
        }
        Ok(())
    }

    /// Prints the list for machines.
    pub async fn show_json(&self, context: &CommandContext) -> Result<(), CommandError> {
        print_json(&mut self.pages(context)).await
    }
}

/// The whole list as one JSON text, written while it is read: however long it is, no more than a page of it is held.
async fn print_json(pages: &mut Pages<'_>) -> Result<(), CommandError> {
    let output = pages.context.output;
    let mut is_first = true;
    while let Some(page) = pages.next().await? {
        for item in page.items {
            let opening = if is_first { "{\n  \"items\": [\n" } else { ",\n" };
            output.print_part(&format!("{opening}    {}", pretty(item.get()).replace('\n', "\n    ")))?;
            is_first = false;
        }
    }
    let opening = if is_first { "{\n  \"items\": [" } else { "\n  " };
    let cursor = serde_json::to_string(&pages.cursor).map_err(anyhow::Error::from)?;
    Ok(output.print(&format!("{opening}],\n  \"next_cursor\": {cursor}\n}}"))?)
}
