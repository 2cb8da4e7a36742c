//! The choices a schedule has where the calendar leaves room for them. The defaults are Debian cron's.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What becomes of a fixed local time that the clock jumps over.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DstGap {
        /// It fires at the first instant after the gap; several in one gap become one firing.
        #[default]
        RunAfter = "run_after",
        /// It does not fire.
        Skip = "skip",
        /// It fires as long after the jump as it would have without it: 02:30 becomes 03:30.
        Shift = "shift",
    }
}

words! {
    /// What becomes of a fixed local time that happens twice.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DstFold {
        /// It fires the first time.
        #[default]
        Once = "once",
        /// It fires the second time.
        Last = "last",
        /// It fires both times.
        Both = "both",
    }
}

words! {
    /// How day-of-month and day-of-week go together when both are restricted.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum DayLogic {
        /// A day matches if either does; if one of the fields starts with `*` or `?`, both must.
        #[default]
        Or = "or",
        /// A day matches only if both do.
        And = "and",
    }
}
