//! The advisory locks of this store, in one place so that their numbers cannot clash.
//!
//! `1953063787` is "tick" in ASCII: our class among the locks of a database that others may use too. A session's lock
//! is in the other space of keys, the 64-bit one, where its id's hash with our seed stands for it.

/// Held by whoever migrates the schema, until its transaction ends.
pub(super) const LOCK_MIGRATIONS: &str = "SELECT pg_advisory_xact_lock(1953063787, 2)";

/// Opens a transaction that claims. It waits for a pause or halt under way, so the claim's own snapshot, taken by the
/// next statement, is newer than any pause that was acknowledged. For the plan see
/// [`BEGIN_PLANNED`](super::pipeline::BEGIN_PLANNED).
pub(super) const BEGIN_CLAIM: &str = "\
BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SELECT pg_advisory_xact_lock_shared(1953063787, 1)";

macro_rules! hold_back_claims {
    () => {
        "SELECT pg_advisory_xact_lock(1953063787, 1)"
    };
}

/// Waits for the claims under way, and holds back new ones until the transaction ends. That is for whoever pauses or
/// halts, before it locks anything else.
pub(super) const HOLD_BACK_CLAIMS: &str = hold_back_claims!();

/// Opens a transaction that does so.
pub(super) const BEGIN_CONTROL: &str = concat!("BEGIN; ", hold_back_claims!());

/// The key of the lock that a living process holds for its session; `$id` is an SQL expression of type uuid.
macro_rules! session_key {
    ($id:literal) => {
        concat!("hashtextextended(", $id, "::text, 1953063787)")
    };
}

pub(super) use session_key;
