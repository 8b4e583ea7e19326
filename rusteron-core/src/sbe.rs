//! Messages in SBE. A crate lists the messages of a schema in a table, from which
//! [`sbe_messages!`](crate::sbe_messages) makes structures, encoders, decoders and layouts.
//!
//! A field is present if it ends within the block that the sender declares, and the sender's version has it.
//! Variable data begins behind the sender's block. So messages of older and newer senders are understood, and
//! hostile bytes decode to nothing.

/// The header of a message: its type, and the version and block length of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// Length of the sender's fields in bytes, without variable data.
    pub block_length: u16,
    /// The id of the message's layout.
    pub template_id: u16,
    /// The id of the schema that describes the message.
    pub schema_id: u16,
    /// The sender's version of the schema.
    pub version: u16,
}

impl MessageHeader {
    /// Length of the encoded header in bytes.
    pub const LENGTH: usize = 8;

    /// Splits a message into its header and the bytes behind the header. Returns `None` if the
    /// message is shorter than a header.
    #[inline]
    pub fn split(message: &[u8]) -> Option<(Self, &[u8])> {
        let (header, body) = message.split_first_chunk::<{ Self::LENGTH }>()?;
        let [b0, b1, t0, t1, s0, s1, v0, v1] = *header;
        let header = Self {
            block_length: u16::from_le_bytes([b0, b1]),
            template_id: u16::from_le_bytes([t0, t1]),
            schema_id: u16::from_le_bytes([s0, s1]),
            version: u16::from_le_bytes([v0, v1]),
        };
        Some((header, body))
    }

    /// Returns the encoded header.
    pub const fn to_bytes(self) -> [u8; Self::LENGTH] {
        let [b0, b1] = self.block_length.to_le_bytes();
        let [t0, t1] = self.template_id.to_le_bytes();
        let [s0, s1] = self.schema_id.to_le_bytes();
        let [v0, v1] = self.version.to_le_bytes();
        [b0, b1, t0, t1, s0, s1, v0, v1]
    }
}

/// The layout of a message.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The message's name in Aeron's schema.
    pub name: &'static str,
    /// The message's id in Aeron's schema.
    pub template_id: u16,
    /// Length of all fields in bytes.
    pub block_length: u16,
    /// The fields of fixed length, in order.
    pub fields: &'static [FieldLayout],
    /// The variable data behind the fields, in order.
    pub data: &'static [DataLayout],
}

/// A field of fixed length.
#[derive(Debug, Clone, Copy)]
pub struct FieldLayout {
    /// The field's name here: `snake_case` of the name in the schema.
    pub name: &'static str,
    /// The field's type.
    pub kind: FieldKind,
    /// The value of an absent field.
    pub null: i64,
    /// The version of the schema that added the field.
    pub since: u16,
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// 32 bits, with a sign. Enumerations have this type, too.
    I32,
    /// 64 bits, with a sign.
    I64,
}

impl FieldKind {
    /// Length of an encoded field in bytes.
    pub const fn length(self) -> u16 {
        match self {
            Self::I32 => 4,
            Self::I64 => 8,
        }
    }
}

/// Variable data: a length of 32 bits, and as many bytes.
#[derive(Debug, Clone, Copy)]
pub struct DataLayout {
    /// The name here: `snake_case` of the name in the schema.
    pub name: &'static str,
    /// The content.
    pub kind: DataKind,
    /// The version of the schema that added the data.
    pub since: u16,
}

/// The content of variable data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKind {
    /// ASCII text.
    Ascii,
    /// Any bytes.
    Bytes,
}

/// Reads the fields of a message in the order of its layout.
///
/// A field is present if it ends within the sender's block and the sender's version has the field.
/// Variable data begins behind the sender's block, which may be longer than the known fields.
#[derive(Debug)]
pub struct Reader<'a> {
    block: &'a [u8],
    data: &'a [u8],
    offset: usize,
    version: u16,
}

impl<'a> Reader<'a> {
    /// Returns `None` if the message is shorter than the block.
    #[inline]
    pub fn new(header: MessageHeader, body: &'a [u8]) -> Option<Self> {
        let (block, data) = body.split_at_checked(usize::from(header.block_length))?;
        Some(Self { block, data, offset: 0, version: header.version })
    }

    #[inline]
    fn next<const N: usize>(&mut self, since: u16) -> Option<[u8; N]> {
        let start = self.offset;
        self.offset += N;
        if self.version < since {
            return None;
        }
        self.block.get(start..)?.first_chunk().copied()
    }

    /// Reads a field that a version of the schema has added. Returns `null` if the field is absent.
    #[inline]
    pub fn i32(&mut self, null: i32, since: u16) -> i32 {
        self.next(since).map_or(null, i32::from_le_bytes)
    }

    /// Like [`i32`](Self::i32).
    #[inline]
    pub fn i64(&mut self, null: i64, since: u16) -> i64 {
        self.next(since).map_or(null, i64::from_le_bytes)
    }

    /// Reads variable data. Returns `None` if the data is truncated. Data that the sender's version
    /// does not have is empty.
    #[inline]
    pub fn data(&mut self, since: u16) -> Option<&'a [u8]> {
        if self.version < since {
            return Some(&[]);
        }
        let (length, rest) = self.data.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (data, rest) = rest.split_at_checked(length)?;
        self.data = rest;
        Some(data)
    }
}

/// Writes the fields of a message in the order of its layout. Each method returns `None` if the target has no
/// space left.
#[derive(Debug)]
pub struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    /// Creates a writer that begins at the start of the target.
    pub fn new(target: &'a mut [u8]) -> Self {
        Self { rest: target }
    }

    /// Writes bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let (target, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(bytes.len())?;
        target.copy_from_slice(bytes);
        self.rest = rest;
        Some(())
    }

    /// Writes a field.
    #[inline]
    pub fn i32(&mut self, value: i32) -> Option<()> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes a field.
    #[inline]
    pub fn i64(&mut self, value: i64) -> Option<()> {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes variable data.
    pub fn data(&mut self, data: &[u8]) -> Option<()> {
        self.bytes(&u32::try_from(data.len()).ok()?.to_le_bytes())?;
        self.bytes(data)
    }
}

/// Makes structures, encoders, decoders and layouts from the table of a schema's messages.
///
/// The table begins with the visibility of all names, the id of the schema, and the version in which messages are
/// written. The first block of a message has the fields of fixed length, the second block the variable data.
/// `since` names the version that added a field, and `null` the value of an absent field if it is not the type's
/// smallest value.
///
/// ```
/// rusteron_core::sbe_messages! {
///     pub schema 7, version 2;
///
///     /// A greeting.
///     Greeting<'a> = 1 {
///         /// The guest.
///         guest_id: i64;
///         /// How many times.
///         count: i32, null 1, since 2;
///     } + {
///         /// What is said.
///         text: Ascii;
///     }
/// }
///
/// let greeting = Greeting { guest_id: 5, count: 3, text: b"hello" };
/// let bytes = greeting.to_vec();
/// let (header, body) = rusteron_core::sbe::MessageHeader::split(&bytes).unwrap();
/// assert_eq!(Greeting::decode(header, body), Some(greeting));
/// ```
#[macro_export]
macro_rules! sbe_messages {
    // A message without variable data always has the same length.
    (@fixed_length $visibility:vis, $name:ident <$lifetime:lifetime>) => {};
    (@fixed_length $visibility:vis, $name:ident) => {
        impl $name {
            /// Length of the encoded message in bytes, with its header.
            $visibility const LENGTH: usize =
                $crate::sbe::MessageHeader::LENGTH + Self::BLOCK_LENGTH as usize;

            /// Returns the encoded message with its header.
            $visibility fn to_bytes(&self) -> [u8; Self::LENGTH] {
                let mut bytes = [0; Self::LENGTH];
                // The array is as long as the message.
                let _ = self.encode(&mut bytes);
                bytes
            }
        }
    };
    (@or_default $default:expr) => {
        $default
    };
    (@or_default $default:expr, $value:literal) => {
        $value
    };
    (@field_kind i32) => {
        $crate::sbe::FieldKind::I32
    };
    (@field_kind i64) => {
        $crate::sbe::FieldKind::I64
    };
    (
        $visibility:vis schema $schema_id:literal, version $schema_version:literal;
        $(
            $(#[$attribute:meta])*
            $name:ident $(<$lifetime:lifetime>)? = $template_id:literal {
                $(
                    $(#[$field_attribute:meta])*
                    $field:ident: $type:ident $(, null $null:literal)? $(, since $since:literal)?;
                )*
            } $(+ {
                $(
                    $(#[$data_attribute:meta])*
                    $data:ident: $kind:ident $(, since $data_since:literal)?;
                )*
            })?
        )*
    ) => {
        /// The id of the schema.
        $visibility const SCHEMA_ID: u16 = $schema_id;
        /// The version of the schema in which messages are written.
        $visibility const SCHEMA_VERSION: u16 = $schema_version;

        $(
            $(#[$attribute])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            $visibility struct $name $(<$lifetime>)? {
                $($(#[$field_attribute])* $visibility $field: $type,)*
                $($($(#[$data_attribute])* $visibility $data: &'a [u8],)*)?
            }

            impl $(<$lifetime>)? $name $(<$lifetime>)? {
                /// The id of the message.
                $visibility const TEMPLATE_ID: u16 = $template_id;
                /// Length of all fields in bytes, without variable data.
                $visibility const BLOCK_LENGTH: u16 = 0 $(+ size_of::<$type>() as u16)*;
                /// The message's header.
                $visibility const HEADER: $crate::sbe::MessageHeader = $crate::sbe::MessageHeader {
                    block_length: Self::BLOCK_LENGTH,
                    template_id: Self::TEMPLATE_ID,
                    schema_id: SCHEMA_ID,
                    version: SCHEMA_VERSION,
                };
                /// The message's layout.
                $visibility const LAYOUT: $crate::sbe::Layout = $crate::sbe::Layout {
                    name: stringify!($name),
                    template_id: Self::TEMPLATE_ID,
                    block_length: Self::BLOCK_LENGTH,
                    fields: &[$($crate::sbe::FieldLayout {
                        name: stringify!($field),
                        kind: $crate::sbe_messages!(@field_kind $type),
                        null: $crate::sbe_messages!(@or_default $type::MIN $(, $null)?) as i64,
                        since: $crate::sbe_messages!(@or_default 0 $(, $since)?),
                    },)*],
                    data: &[$($($crate::sbe::DataLayout {
                        name: stringify!($data),
                        kind: $crate::sbe::DataKind::$kind,
                        since: $crate::sbe_messages!(@or_default 0 $(, $data_since)?),
                    },)*)?],
                };

                /// Decodes the bytes behind a header. Returns `None` for a truncated message. The
                /// caller has checked schema and template.
                #[inline]
                $visibility fn decode(
                    header: $crate::sbe::MessageHeader,
                    body: &$($lifetime)? [u8],
                ) -> Option<Self> {
                    let mut reader = $crate::sbe::Reader::new(header, body)?;
                    // The fields are evaluated in this order.
                    Some(Self {
                        $($field: reader.$type(
                            $crate::sbe_messages!(@or_default $type::MIN $(, $null)?),
                            $crate::sbe_messages!(@or_default 0 $(, $since)?),
                        ),)*
                        $($($data: reader.data(
                            $crate::sbe_messages!(@or_default 0 $(, $data_since)?)
                        )?,)*)?
                    })
                }

                /// Returns the length of the encoded message in bytes, with its header.
                $visibility const fn encoded_length(&self) -> usize {
                    $crate::sbe::MessageHeader::LENGTH + Self::BLOCK_LENGTH as usize
                        $($(+ size_of::<u32>() + self.$data.len())*)?
                }

                /// Writes the message with its header to the beginning of `target`. Returns `None`
                /// if the target is shorter than [`encoded_length`](Self::encoded_length).
                #[inline]
                $visibility fn encode(&self, target: &mut [u8]) -> Option<()> {
                    let mut writer = $crate::sbe::Writer::new(target);
                    writer.bytes(&Self::HEADER.to_bytes())?;
                    $(writer.$type(self.$field)?;)*
                    $($(writer.data(self.$data)?;)*)?
                    Some(())
                }

                /// Returns the encoded message with its header.
                $visibility fn to_vec(&self) -> Vec<u8> {
                    let mut bytes = vec![0; self.encoded_length()];
                    // Fails only for data of 4 GiB.
                    let encoded = self.encode(&mut bytes);
                    debug_assert!(encoded.is_some(), "{}", stringify!($name));
                    bytes
                }
            }

            $crate::sbe_messages! { @fixed_length $visibility, $name $(<$lifetime>)? }
        )*

        /// Any message of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Message<'a> {
            $($name($name $(<$lifetime>)?),)*
            Unknown,
        }

        impl<'a> Message<'a> {
            /// Decodes the bytes behind a header. Returns `None` for a truncated message. The caller
            /// has checked the schema.
            #[inline]
            pub(crate) fn decode(
                header: $crate::sbe::MessageHeader,
                body: &'a [u8],
            ) -> Option<Self> {
                Some(match header.template_id {
                    $($template_id => Self::$name($name::decode(header, body)?),)*
                    _ => Self::Unknown,
                })
            }
        }

        /// The layouts of all messages.
        $visibility const LAYOUTS: &[$crate::sbe::Layout] = &[$($name::LAYOUT,)*];

        /// Encodes a message from the values of its fields and data, in the order of its layout.
        /// Returns `None` if values are missing, are out of range, or the template is unknown.
        $visibility fn encode_values(
            template_id: u16,
            fields: &[i64],
            data: &[&[u8]],
        ) -> Option<Vec<u8>> {
            let (mut fields, mut data) = (fields.iter(), data.iter());
            match template_id {
                $($template_id => {
                    let message = $name {
                        $($field: $type::try_from(*fields.next()?).ok()?,)*
                        $($($data: data.next()?,)*)?
                    };
                    (fields.next().is_none() && data.next().is_none()).then(|| message.to_vec())
                })*
                _ => None,
            }
        }

        /// Decodes any message of the table: its template, fields and data, in the order of its
        /// layout. Returns `None` for another schema or template, and for truncated messages.
        $visibility fn decode_values(message: &[u8]) -> Option<(u16, Vec<i64>, Vec<&[u8]>)> {
            let (header, body) = $crate::sbe::MessageHeader::split(message)?;
            if header.schema_id != SCHEMA_ID {
                return None;
            }
            match header.template_id {
                $($template_id => {
                    let message = $name::decode(header, body)?;
                    let fields = vec![$(i64::from(message.$field),)*];
                    Some(($template_id, fields, vec![$($(message.$data,)*)?]))
                })*
                _ => None,
            }
        }
    };
}
