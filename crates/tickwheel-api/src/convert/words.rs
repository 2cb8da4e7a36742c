//! Words that are the same on the wire and in the core, in both directions. The compiler sees to it that none is forgotten.

use tickwheel_core::schedule as core;
use tickwheel_protocol as wire;

macro_rules! same_words {
    ($($name:ident $into_core:ident $into_wire:ident { $($variant:ident),+ })+) => {
        $(
            pub fn $into_core(word: wire::$name) -> core::$name {
                match word { $(wire::$name::$variant => core::$name::$variant),+ }
            }

            pub fn $into_wire(word: core::$name) -> wire::$name {
                match word { $(core::$name::$variant => wire::$name::$variant),+ }
            }
        )+

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn the_words_of_the_wire_are_those_of_the_core() {
                $(
                    assert_eq!(wire::$name::ALL.len(), core::$name::ALL.len());
                    for word in wire::$name::ALL {
                        assert_eq!($into_core(*word).as_str(), word.as_str());
                        assert_eq!($into_wire($into_core(*word)), *word);
                    }
                )+
            }
        }
    };
}

same_words! {
    DstGap gap wire_gap { RunAfter, Skip, Shift }
    DstFold fold wire_fold { Once, Last, Both }
    DayLogic day_logic wire_day_logic { Or, And }
    MissedPolicy missed_policy wire_missed_policy { Skip, FireOnce, Backfill }
    Overlap overlap wire_overlap { Allow, Skip, Queue, Replace }
    OnExcluded on_excluded wire_on_excluded { Skip, NextDay }
    FireOutcome fire_outcome wire_fire_outcome { Fired, Skipped, Missed, Coalesced, Triggered, Backfilled }
}
