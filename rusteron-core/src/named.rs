//! Enumerations whose variants have names in settings and options.

/// Declares an enumeration with a name for each variant. Errors say what the enumeration is, such
/// as `"a threading mode"`.
#[doc(hidden)]
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        $type:ident, $what:literal;
        $($(#[$variant_meta:meta])* $variant:ident = $name:literal,)+
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $type {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the variant's name in settings and options.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::Error;

            /// Parses the name of a variant.
            ///
            /// # Errors
            /// `ErrorKind::InvalidArgument` for any other name; the text lists the names.
            fn from_str(name: &str) -> $crate::Result<Self> {
                Self::ALL.iter().copied().find(|variant| variant.name() == name).ok_or_else(|| {
                    let names = [$($name,)+].join(", ");
                    let text = format!("{name:?} is not {}; there are {names}", $what);
                    $crate::Error::new($crate::ErrorKind::InvalidArgument, text)
                })
            }
        }
    };
}
