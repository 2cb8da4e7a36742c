//! Names of things, each its own type so that they cannot be mistaken for one another.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID inside.
            pub const fn as_uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// One job. UUIDv7, so that ids sort by the moment of creation.
    JobId
}

uuid_id! {
    /// One schedule. UUIDv7.
    ScheduleId
}

uuid_id! {
    /// One run of a workflow. UUIDv7 whose last bits are free: its tasks count on from it ([`JobId::of_task`]).
    RunId
}

uuid_id! {
    /// One run of a process that executes jobs. All its attempts share this session's lease.
    SessionId
}

uuid_id! {
    /// One route: jobs that are alike to every worker. A digest of what they are alike in
    /// ([`Route`](crate::matching::Route)).
    RouteId
}

/// So many of the last bits of a run's id number its tasks.
const TASK_BITS: u32 = 20;
const TASK_MASK: u128 = (1 << TASK_BITS) - 1;

impl RunId {
    /// A run may have tasks up to this number.
    pub const TASK_INDEX_MAX: u32 = (1 << TASK_BITS) - 1;

    /// A run's id of a fresh UUIDv7.
    pub const fn fresh(uuid: Uuid) -> Self {
        Self(Uuid::from_u128(uuid.as_u128() & !TASK_MASK))
    }

    /// The run that a job starts: always the same one, however often the job is tried.
    pub const fn of_job(job: JobId) -> Self {
        // The variant bits stay; the others make sure that the tasks are not taken for neighbours of the job.
        const MIX: u128 = 0x2545_f491_4f6c_dd1d & !(0b11 << 62);
        Self::fresh(Uuid::from_u128(job.0.as_u128() ^ MIX))
    }

    /// The run to which a job belongs that is known to be a task.
    pub const fn of_task(job: JobId) -> Self {
        Self::fresh(job.0)
    }

    /// Not less than any id.
    pub const LAST: Self = Self(Uuid::max());
}

impl ScheduleId {
    /// Not less than any id.
    pub const LAST: Self = Self(Uuid::max());
}

impl JobId {
    /// The smallest id of a job created at `ms` or later: the lower edge of a range of creation times.
    pub fn first_at(at: crate::Timestamp) -> Self {
        let ms = u64::try_from(at.as_millis()).unwrap_or(0).min((1 << 48) - 1);
        Self(Uuid::from_u128(u128::from(ms) << 80))
    }

    /// The job that is number `index` of a run. They follow each other, so that a run is one range of ids.
    pub fn of_task(run: RunId, index: u32) -> Self {
        assert!(index <= RunId::TASK_INDEX_MAX, "a run has no task number {index}");
        Self(Uuid::from_u128(run.0.as_u128() | u128::from(index)))
    }

    /// Its number in its run, of a task.
    pub const fn task_index(self) -> u32 {
        (self.0.as_u128() & TASK_MASK) as u32
    }

    /// The id before this one, if there is one.
    pub fn before(self) -> Option<Self> {
        self.0.as_u128().checked_sub(1).map(|before| Self(Uuid::from_u128(before)))
    }

    /// Not less than any id.
    pub const LAST: Self = Self(Uuid::max());
    /// Not more than any id.
    pub const FIRST: Self = Self(Uuid::nil());
}

/// A map by id.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;
/// A set of ids.
pub type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// Takes the random tail of an id for its hash. Ids are made here and not by clients, so nobody can choose colliding
/// ones, and a hash that would withstand that is a tenth of the work of a drain.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(tail) = bytes.last_chunk() {
            self.0 = u64::from_be_bytes(*tail);
        }
    }

    /// The length that comes before the bytes is always the same.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        // The tail may count up, as that of tasks does: spread what is in its lowest bits over all of them.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }
}

/// A slice of the job space with one owning node at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u16);

impl Partition {
    /// How many partitions the job space has.
    pub const COUNT: u16 = 64;

    /// The partition of a job without a concurrency key: its id's random tail decides.
    pub fn of(id: JobId) -> Self {
        let tail = id.as_uuid().as_u128() as u64;
        Self((tail % u64::from(Self::COUNT)) as u16)
    }

    /// The partition of a run and all its tasks: one owner sees the whole of it.
    pub const fn of_run(run: RunId) -> Self {
        let tail = (run.0.as_u128() >> TASK_BITS) as u64;
        Self((tail % Self::COUNT as u64) as u16)
    }

    /// The partition of everything that has this key: what shares a limit shares an owner.
    pub fn of_key(key: &str) -> Self {
        let digest = Sha256::digest(key);
        Self(u16::from_be_bytes([digest[0], digest[1]]) % Self::COUNT)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn the_tasks_of_a_run_are_spread_over_a_map() {
        let run = RunId::fresh(Uuid::from_u128(0x0194_1f29_7c00_7abc_8def_0123_4567_89ab));
        let hash = |index| BuildHasherDefault::<IdHasher>::default().hash_one(JobId::of_task(run, index));
        // A map finds its place by the lowest bits and tells neighbours apart by the highest.
        let low: HashSet<u64> = (1..=4_096).map(|index| hash(index) & 0xfff).collect();
        let high: HashSet<u64> = (1..=4_096).map(|index| hash(index) >> 57).collect();
        assert!(low.len() > 2_000, "{}", low.len());
        assert_eq!(high.len(), 128);
    }
}
