//! Ids as people type them: complete, or a beginning or end that only one id has.
//!
//! Ids begin with the time, so a beginning is searched among what was created then. An end, such as the short ids of a
//! list, can be anywhere and is searched among the newest. Both searches have a limit.

use std::collections::BTreeSet;

use serde::Deserialize;
use tickwheel_protocol::Time;
use uuid::Uuid;

use super::CommandContext;
use super::paging::Listing;
use crate::failure::CommandError;
use crate::output::{SHORT_ID_CHARS, now, plain};

/// Fewer characters would match by chance.
const PART_CHARS_MIN: usize = 4;
/// How many ids a search reads.
const EXAMINED_MAX: usize = 20_000;
/// How many ids are listed if several match.
const NAMED_MAX: usize = 5;
/// An id's first digits are the milliseconds of its creation.
const TIME_DIGITS: usize = 12;

/// What the id belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A job.
    Job,
    /// A job that failed: only those can be dead letters.
    DeadLetter,
    /// A run.
    Run,
    /// A worker.
    Worker,
}

impl Kind {
    /// The name of the kind.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::DeadLetter => "dead letter",
            Self::Run => "run",
            Self::Worker => "worker",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Job | Self::DeadLetter => "jobs",
            Self::Run => "workflow-runs",
            Self::Worker => "workers",
        }
    }
}

#[derive(Deserialize)]
struct Item {
    id: Uuid,
}

/// The complete id. What cannot be part of an id is returned as it is, and the server reports the mistake.
pub async fn whole(kind: Kind, text: &str, context: &CommandContext) -> Result<String, CommandError> {
    let Some(part) = Part::read(text) else { return Ok(text.to_owned()) };
    let mut found = Found::default();
    if let (Some((from, to)), Kind::Job | Kind::DeadLetter) = (part.created(now()), kind) {
        let created = [("from", Some(from.to_string())), ("to", Some(to.to_string()))];
        found.look(kind, &part, &created, context).await?;
    }
    if found.ids.is_empty() {
        found.look(kind, &part, &[], context).await?;
    }
    found.only(kind, text)
}

/// The same for several.
pub async fn all_whole(
    kind: Kind,
    texts: &[String],
    context: &CommandContext,
) -> Result<Vec<String>, CommandError> {
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        ids.push(whole(kind, text, context).await?);
    }
    Ok(ids)
}

/// A part of an id, without its dashes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part(String);

impl Part {
    fn read(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
        let is_part = (PART_CHARS_MIN..32).contains(&digits.len());
        (is_part && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(Self(digits))
    }

    fn is_of(&self, id: Uuid) -> bool {
        let digits = id.simple().to_string();
        digits.starts_with(&self.0) || digits.ends_with(&self.0)
    }

    /// Longer ends are unique in practice.
    fn is_enough(&self) -> bool {
        self.0.len() >= SHORT_ID_CHARS
    }

    /// When an id with this beginning was created, unless that is in the future: then it is no beginning.
    fn created(&self, now: Time) -> Option<(Time, Time)> {
        let known: String = self.0.chars().take(TIME_DIGITS).collect();
        let filled = |digit: char| {
            i64::from_str_radix(&format!("{known:<TIME_DIGITS$}").replace(' ', &digit.to_string()), 16)
        };
        let (from, to) = (filled('0').ok()?, filled('f').ok()? + 1);
        (from <= now.as_millis()).then(|| (Time::from_millis(from), Time::from_millis(to)))
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    ids: BTreeSet<Uuid>,
    is_cut_short: bool,
}

impl Found {
    async fn look(
        &mut self,
        kind: Kind,
        part: &Part,
        created: &[(&str, Option<String>)],
        context: &CommandContext,
    ) -> Result<(), CommandError> {
        let failed = (kind == Kind::DeadLetter).then(|| "failed".to_owned());
        let filters: Vec<_> = created.iter().cloned().chain([("status", failed)]).collect();
        let path = [kind.path()];
        let listing = Listing { path: &path, filters: &filters, part: None };
        let (mut pages, mut examined) = (listing.large_pages(context), 0);
        while let Some(items) = pages.items::<Item>().await? {
            examined += items.len();
            self.ids.extend(items.into_iter().map(|item| item.id).filter(|id| part.is_of(*id)));
            if part.is_enough() && !self.ids.is_empty() {
                return Ok(());
            }
            if examined >= EXAMINED_MAX {
                self.is_cut_short = true;
                return Ok(());
            }
        }
        Ok(())
    }

    fn only(self, kind: Kind, text: &str) -> Result<String, CommandError> {
        let (word, text) = (kind.word(), plain(text));
        let mut ids = self.ids.iter().map(Uuid::to_string);
        match (ids.next(), self.ids.len()) {
            (Some(id), 1) => Ok(id),
            (Some(first), count) => {
                let named: Vec<_> = std::iter::once(first).chain(ids).take(NAMED_MAX).collect();
                let more = if count > NAMED_MAX { ", …" } else { "" };
                let named = named.join(", ");
                Err(CommandError::BadInput(format!(
                    "{text:?} matches {count} {word}s: {named}{more}; give more of the id"
                )))
            }
            (None, _) => {
                let among = if self.is_cut_short {
                    format!(" among the newest {EXAMINED_MAX}")
                } else {
                    String::new()
                };
                Err(CommandError::BadInput(format!(
                    "there is no {word}{among} whose id begins or ends with {text:?}"
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part {
        Part::read(text).unwrap()
    }

    #[test]
    fn a_part_is_hexadecimal_and_neither_too_short_nor_whole() {
        for text in ["abc", "nonsense", "a/bcd", "01890a5d-ac96-774b-bcce-b302099a8057", "", "----"] {
            assert_eq!(Part::read(text), None, "{text}");
        }
        assert_eq!(part("01890A5D-AC96").0, "01890a5dac96");
    }

    #[test]
    fn a_part_is_the_beginning_or_the_end() {
        let id = Uuid::parse_str("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
        for text in ["01890a5d", "01890a5d-ac96-7", "b302099a8057", "8057", "bcce-b302099a8057"] {
            assert!(part(text).is_of(id), "{text}");
        }
        for text in ["774b", "1890a5d", "b302"] {
            assert!(!part(text).is_of(id), "{text}");
        }
    }

    #[test]
    fn a_beginning_says_when_it_was_created() {
        let id = Uuid::parse_str("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
        let created = Time::from_millis(0x0189_0a5d_ac96);
        let now = "2026-11-16T12:00:00Z".parse().unwrap();
        for text in ["01890a5d", "01890a5dac96", "01890a5d-ac96-774b"] {
            let (from, to) = part(text).created(now).unwrap();
            assert!(from <= created && created < to && part(text).is_of(id), "{text}");
        }
        let (from, to) = part("01890a5d-ac96").created(now).unwrap();
        assert_eq!(to.as_millis() - from.as_millis(), 1);
        assert_eq!(part("b302099a8057").created(now), None, "nothing was created so late");
    }

    #[test]
    fn what_could_be_several_is_refused_and_named() {
        let ids: BTreeSet<Uuid> = (0..7).map(Uuid::from_u128).collect();
        let told = |ids: BTreeSet<Uuid>| Found { ids, is_cut_short: true }.only(Kind::Job, "0000");
        let several = told(ids.clone()).unwrap_err().to_string();
        assert!(
            several.starts_with("\"0000\" matches 7 jobs: 00000000-") && several.contains("004, …;"),
            "{several}"
        );
        assert_eq!(told(ids.into_iter().take(1).collect()).unwrap(), Uuid::from_u128(0).to_string());
        let none = told(BTreeSet::new()).unwrap_err().to_string();
        assert_eq!(none, "there is no job among the newest 20000 whose id begins or ends with \"0000\"");
    }
}
