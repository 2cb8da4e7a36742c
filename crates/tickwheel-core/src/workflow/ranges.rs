//! Lists of numbers as they are written down: those that follow each other as a pair, the first and the last of them.
//! `[1, 5, 6, 7, 8]` is `[1,[5,8]]`.
//!
//! Tasks are numbered as they are declared, and what is declared together is mostly waited for together: ten thousand
//! tasks behind one are a dozen bytes in its position.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{SerializeSeq, Serializer};

/// A pair is not longer than this: so many tasks no run has.
const LEN_MAX: u32 = 1 << 24;
/// Two numbers are as long as a pair.
const LEN_MIN: u32 = 3;

/// For `#[serde(with)]`.
pub fn serialize<S: Serializer>(numbers: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    let mut written = serializer.serialize_seq(None)?;
    for run in numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next)) {
        match run {
            [first, .., last] if last - first >= LEN_MIN - 1 => written.serialize_element(&(first, last))?,
            several => several.iter().try_for_each(|number| written.serialize_element(number))?,
        }
    }
    written.end()
}

/// For `#[serde(with)]`.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    deserializer.deserialize_seq(Numbers)
}

struct Numbers;

impl<'de> Visitor<'de> for Numbers {
    type Value = Vec<u32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers, and pairs of a first and a last one")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<u32>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(Item { first, last }) = items.next_element()? {
            if last < first || last - first >= LEN_MAX {
                return Err(A::Error::custom("the pair is no range"));
            }
            numbers.extend(first..=last);
        }
        Ok(numbers)
    }
}

/// A number, or a pair.
struct Item {
    first: u32,
    last: u32,
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneItem)
    }
}

struct OneItem;

impl<'de> Visitor<'de> for OneItem {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a pair of them")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Item, E> {
        let number = u32::try_from(number).map_err(|_| E::custom("the number is too large"))?;
        Ok(Item { first: number, last: number })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Item, A::Error> {
        match (pair.next_element()?, pair.next_element()?, pair.next_element::<u32>()?) {
            (Some(first), Some(last), None) => Ok(Item { first, last }),
            _ => Err(A::Error::custom("a pair has a first and a last number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct List(#[serde(with = "super")] Vec<u32>);

    fn written(numbers: &[u32]) -> String {
        serde_json::to_string(&List(numbers.to_vec())).expect("numbers")
    }

    fn read(text: &str) -> Option<Vec<u32>> {
        serde_json::from_str(text).ok().map(|List(numbers)| numbers)
    }

    #[test]
    fn what_follows_each_other_is_a_pair() {
        assert_eq!(written(&[]), "[]");
        assert_eq!(written(&[1, 5, 6, 7, 8]), "[1,[5,8]]");
        assert_eq!(
            written(&[9, 10, 3, 2, 1, u32::MAX - 2, u32::MAX - 1, u32::MAX]),
            "[9,10,3,2,1,[4294967293,4294967295]]"
        );
        assert_eq!(written(&(1..=9_998).collect::<Vec<_>>()), "[[1,9998]]");
    }

    #[test]
    fn lists_written_without_pairs_are_read_and_nonsense_is_not() {
        assert_eq!(read("[1, 2, 3, 9]"), Some(vec![1, 2, 3, 9]));
        assert_eq!(read("[[4, 4], 7]"), Some(vec![4, 7]));
        for text in
            ["[[5, 4]]", "[[0, 4294967295]]", "[[1]]", "[[1, 2, 3]]", "[-1]", "[4294967296]", "[\"1\"]", "7"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_again(lengths in prop::collection::vec((0_u32..1_000, 0_u32..6), 0..20)) {
            let numbers: Vec<u32> = lengths.into_iter().flat_map(|(first, len)| first..first + len).collect();
            prop_assert_eq!(read(&written(&numbers)), Some(numbers));
        }
    }
}
