//! Enums that have a number in the stores and a word everywhere else, said once for both.

/// Defines a fieldless enum whose variants each have a word; a variant's position is its number in the stores and never
/// changes.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The number that stands for it in the stores. Never reused.
            pub const fn code(self) -> i16 {
                self as i16
            }

            /// What a store's number stands for.
            pub fn from_code(code: i16) -> Option<Self> {
                Self::ALL.get(usize::try_from(code).ok()?).copied()
            }

            /// The word for it, everywhere.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
