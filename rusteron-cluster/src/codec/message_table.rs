//! The macro that makes structures, encoders, decoders and layouts from a table of messages.

/// Makes structures, encoders, decoders and layouts from the table.
///
/// The first block has the fields of fixed length, the second block the variable data. `since` names
/// the version that added a field, and `null` the value of an absent field if it is not the type's
/// smallest value.
macro_rules! messages {
    ($(
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
    )*) => {
        $(
            $(#[$attribute])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $name $(<$lifetime>)? {
                $($(#[$field_attribute])* pub $field: $type,)*
                $($($(#[$data_attribute])* pub $data: &'a [u8],)*)?
            }

            impl $(<$lifetime>)? $name $(<$lifetime>)? {
                /// The id of the message.
                pub const TEMPLATE_ID: u16 = $template_id;
                /// Length of all fields in bytes, without variable data.
                pub const BLOCK_LENGTH: u16 = 0 $(+ size_of::<$type>() as u16)*;
                /// The message's header.
                pub const HEADER: MessageHeader = MessageHeader {
                    block_length: Self::BLOCK_LENGTH,
                    template_id: Self::TEMPLATE_ID,
                    schema_id: SCHEMA_ID,
                    version: SCHEMA_VERSION,
                };
                /// The message's layout.
                pub const LAYOUT: Layout = Layout {
                    name: stringify!($name),
                    template_id: Self::TEMPLATE_ID,
                    block_length: Self::BLOCK_LENGTH,
                    fields: &[$(FieldLayout {
                        name: stringify!($field),
                        kind: field_kind!($type),
                        null: or_default!($type::MIN $(, $null)?) as i64,
                        since: or_default!(0 $(, $since)?),
                    },)*],
                    data: &[$($(DataLayout {
                        name: stringify!($data),
                        kind: DataKind::$kind,
                        since: or_default!(0 $(, $data_since)?),
                    },)*)?],
                };

                /// Decodes the bytes behind a header. Returns `None` for a truncated message. The
                /// caller has checked schema and template.
                #[inline]
                pub fn decode(header: MessageHeader, body: &$($lifetime)? [u8]) -> Option<Self> {
                    let mut reader = Reader::new(header, body)?;
                    // The fields are evaluated in this order.
                    Some(Self {
                        $($field: reader.$type(
                            or_default!($type::MIN $(, $null)?),
                            or_default!(0 $(, $since)?),
                        ),)*
                        $($($data: reader.data(or_default!(0 $(, $data_since)?))?,)*)?
                    })
                }

                /// Returns the length of the encoded message in bytes, with its header.
                pub const fn encoded_length(&self) -> usize {
                    MessageHeader::LENGTH + Self::BLOCK_LENGTH as usize
                        $($(+ size_of::<u32>() + self.$data.len())*)?
                }

                /// Writes the message with its header to the beginning of `target`. Returns `None`
                /// if the target is shorter than [`encoded_length`](Self::encoded_length).
                #[inline]
                pub fn encode(&self, target: &mut [u8]) -> Option<()> {
                    let mut writer = Writer::new(target);
                    writer.bytes(&Self::HEADER.to_bytes())?;
                    $(writer.$type(self.$field)?;)*
                    $($(writer.data(self.$data)?;)*)?
                    Some(())
                }

                /// Returns the encoded message with its header.
                pub fn to_vec(&self) -> Vec<u8> {
                    let mut bytes = vec![0; self.encoded_length()];
                    // Fails only for data of 4 GiB.
                    let encoded = self.encode(&mut bytes);
                    debug_assert!(encoded.is_some(), "{}", stringify!($name));
                    bytes
                }
            }

            fixed_length! { $name $(<$lifetime>)? }
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
            pub(crate) fn decode(header: MessageHeader, body: &'a [u8]) -> Option<Self> {
                Some(match header.template_id {
                    $($template_id => Self::$name($name::decode(header, body)?),)*
                    _ => Self::Unknown,
                })
            }
        }

        /// The layouts of all messages.
        pub const LAYOUTS: &[Layout] = &[$($name::LAYOUT,)*];

        /// Encodes a message from the values of its fields and data, in the order of its layout.
        /// Returns `None` if values are missing, are out of range, or the template is unknown.
        pub fn encode_values(
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
        pub fn decode_values(message: &[u8]) -> Option<(u16, Vec<i64>, Vec<&[u8]>)> {
            let (header, body) = MessageHeader::split(message)?;
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

/// Adds the encoding of a message without variable data, whose length is always the same.
macro_rules! fixed_length {
    ($name:ident <$lifetime:lifetime>) => {};
    ($name:ident) => {
        impl $name {
            /// Length of the encoded message in bytes, with its header.
            pub const LENGTH: usize = MessageHeader::LENGTH + Self::BLOCK_LENGTH as usize;

            /// Returns the encoded message with its header.
            pub fn to_bytes(&self) -> [u8; Self::LENGTH] {
                let mut bytes = [0; Self::LENGTH];
                // The array is as long as the message.
                let _ = self.encode(&mut bytes);
                bytes
            }
        }
    };
}

macro_rules! or_default {
    ($default:expr) => {
        $default
    };
    ($default:expr, $value:literal) => {
        $value
    };
}

macro_rules! field_kind {
    (i32) => {
        FieldKind::I32
    };
    (i64) => {
        FieldKind::I64
    };
}

pub(super) use {field_kind, fixed_length, messages, or_default};
