//! Words that are the same on the wire and in the core, in both directions. The compiler sees to it that none is
//! forgotten.

use tickwheel_core::{schedule, workflow};
use tickwheel_protocol as wire;

macro_rules! same_words {
    ($($core:ident::$name:ident $into_core:ident $into_wire:ident { $($variant:ident),+ })+) => {
        $(
            pub fn $into_core(word: wire::$name) -> $core::$name {
                match word { $(wire::$name::$variant => $core::$name::$variant),+ }
            }

            pub fn $into_wire(word: $core::$name) -> wire::$name {
                match word { $($core::$name::$variant => wire::$name::$variant),+ }
            }
        )+

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn the_words_of_the_wire_are_those_of_the_core() {
                $(
                    assert_eq!(wire::$name::ALL.len(), $core::$name::ALL.len());
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
    schedule::DstGap gap wire_gap { RunAfter, Skip, Shift }
    schedule::DstFold fold wire_fold { Once, Last, Both }
    schedule::DayLogic day_logic wire_day_logic { Or, And }
    schedule::MissedPolicy missed_policy wire_missed_policy { Skip, FireOnce, Backfill }
    schedule::Overlap overlap wire_overlap { Allow, Skip, Queue, Replace }
    schedule::OnExcluded on_excluded wire_on_excluded { Skip, NextDay }
    schedule::FireOutcome fire_outcome wire_fire_outcome { Fired, Skipped, Missed, Coalesced, Triggered, Backfilled }
    workflow::TriggerRule trigger_rule wire_trigger_rule { AllSucceeded, AllDone, AnyFailed }
    workflow::OnFailure on_failure wire_on_failure { FailFast, Continue }
    workflow::RunEvent run_event wire_run_event { Running, Completed, Failed, Cancelled, Stalled }
    workflow::RunStatus run_status wire_run_status { Running, Completed, Failed, Cancelled, Paused }
}
