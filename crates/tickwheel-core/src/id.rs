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
    /// One run of a process that executes jobs. All its attempts share this session's lease.
    SessionId
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

    /// Not less than any id.
    pub const LAST: Self = Self(Uuid::max());
    /// Not more than any id.
    pub const FIRST: Self = Self(Uuid::nil());
}

/// A map by id.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;
/// A set of ids.
pub type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// Takes the random tail of an id for its hash. Ids are made here and not by clients, so nobody can choose colliding ones, and a
/// hash that would withstand that is a tenth of the work of a drain.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(tail) = bytes.last_chunk() {
            self.0 = u64::from_le_bytes(*tail);
        }
    }

    /// The length that comes before the bytes is always the same.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        // The tail may count up: spread it over all the bits.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
    }
}

/// A slice of the job space with one owning node at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u16);

impl Partition {
    /// How many partitions the job space has.
    pub const COUNT: u16 = 64;

    /// The partition of a job that nothing ties to another: its id's random tail decides.
    pub fn of(id: JobId) -> Self {
        let tail = id.as_uuid().as_u128() as u64;
        Self((tail % u64::from(Self::COUNT)) as u16)
    }

    /// The partition of everything that has this key: what shares a limit shares an owner.
    pub fn of_key(key: &str) -> Self {
        let digest = Sha256::digest(key);
        Self(u16::from_be_bytes([digest[0], digest[1]]) % Self::COUNT)
    }
}
