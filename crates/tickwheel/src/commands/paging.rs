//! Reads the pages of a list until there is enough, and prints them as they arrive.

use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tickwheel_protocol::page::LIMIT_MAX;

use super::CommandContext;
use crate::cli::whole;
use crate::failure::CommandError;
use crate::output::{Layout, Table, pretty};

/// Which part of a list to show.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value = "50", value_parser = whole(1..=u32::MAX), allow_negative_numbers = true)]
    limit: u32,
    /// Show all of them
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Continue an earlier list: the value it printed at its end, or its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

/// A list to read.
pub struct Listing<'a> {
    /// Its path.
    pub path: &'a [&'a str],
    /// The filters. Parameters without a value are left out.
    pub filters: &'a [(&'a str, Option<String>)],
    /// Which part of it. `None` reads all, in pages of the server's default size.
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
    /// How many more items are wanted. `None`: all.
    left: Option<usize>,
    /// How many items to request per page. `None`: the server's default.
    page_max: Option<usize>,
    cursor: Option<String>,
    is_over: bool,
}

impl Pages<'_> {
    /// The next page. It may be short or even empty without being the last one.
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

    /// Its pages, as large as possible, for commands that read many.
    pub fn large_pages(&'a self, context: &'a CommandContext) -> Pages<'a> {
        Pages { page_max: Some(LIMIT_MAX), ..self.pages(context) }
    }

    /// All its items.
    pub async fn read<T: DeserializeOwned>(&self, context: &CommandContext) -> Result<Vec<T>, CommandError> {
        let (mut pages, mut items) = (self.pages(context), Vec::new());
        while let Some(page) = pages.items().await? {
            items.extend(page);
        }
        Ok(items)
    }

    /// Prints the list page by page: as JSON, or as the table that `table` makes of the items, or `nothing` if there
    /// are none.
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
            context.output.note(&format!("there are more: use --all, or continue with --cursor {cursor}"));
        }
        Ok(())
    }

    /// Prints the list as JSON.
    pub async fn show_json(&self, context: &CommandContext) -> Result<(), CommandError> {
        print_json(&mut self.pages(context)).await
    }
}

/// Writes the list as one JSON text while reading it: however long it is, only one page is in memory.
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
