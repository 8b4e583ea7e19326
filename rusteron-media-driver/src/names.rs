//! Enumerations whose variants have names in settings and options.

/// Declares an enumeration: of each variant the name, and of those of C the constant.
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
            /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for any other name; the text lists the
            /// names.
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

/// Converts an enumeration to C's and back. C has only values that were converted, or that its own parser wrote.
macro_rules! raw {
    ($type:ident = $c_type:ident; $first:ident = $first_value:ident, $($variant:ident = $value:ident,)*) => {
        impl $type {
            pub(crate) fn to_raw(self) -> ::rusteron_sys::driver::$c_type {
                match self {
                    Self::$first => ::rusteron_sys::driver::$first_value,
                    $(Self::$variant => ::rusteron_sys::driver::$value,)*
                }
            }

            #[allow(dead_code, reason = "not every enumeration is read back")]
            pub(crate) fn from_raw(raw: ::rusteron_sys::driver::$c_type) -> Self {
                match raw {
                    $(::rusteron_sys::driver::$value => Self::$variant,)*
                    _ => Self::$first,
                }
            }
        }
    };
}

pub(crate) use {named, raw};
