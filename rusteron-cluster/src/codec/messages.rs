//! The table of messages, and the structures, encoders, decoders and layouts that come from it.

use crate::codec::fields::{DataKind, DataLayout, FieldKind, FieldLayout, Layout};
use crate::codec::fields::{MessageHeader, SCHEMA_ID, SCHEMA_VERSION};
use crate::codec::fields::{Reader, Writer};

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

messages! {
    /// Stands before the payload of every application message, in both directions.
    SessionMessageHeader = 1 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// Time of the cluster, in its unit; 0 from clients.
        timestamp: i64;
    }

    /// Answers a connect request, or ends a session.
    SessionEvent<'a> = 2 {
        /// The session.
        cluster_session_id: i64;
        /// The request that the event answers.
        correlation_id: i64;
        /// The leader's term.
        leadership_term_id: i64;
        /// The leader.
        leader_member_id: i32;
        /// The event: an `EventCode`.
        code: i32;
        /// The cluster's version of the protocol.
        version: i32, null 0, since 6;
        /// The leader's heartbeat timeout in nanoseconds.
        leader_heartbeat_timeout_ns: i64, since 13;
    } + {
        /// A reason, or the endpoints of all members.
        detail: Ascii;
    }

    /// Asks for a session.
    SessionConnectRequest<'a> = 3 {
        /// The id that the answer repeats.
        correlation_id: i64;
        /// The stream id of the egress.
        response_stream_id: i32;
        /// The client's version of the protocol.
        version: i32, null 0, since 2;
    } + {
        /// The channel of the egress.
        response_channel: Ascii;
        /// Credentials for the cluster's authenticator.
        encoded_credentials: Bytes;
        /// The client's name and version.
        client_info: Ascii, since 14;
    }

    /// Ends a session.
    SessionCloseRequest = 4 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
    }

    /// Keeps a session open.
    SessionKeepAlive = 5 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
    }

    /// Tells a session of a new leader.
    NewLeaderEvent<'a> = 6 {
        /// The new leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// The new leader.
        leader_member_id: i32;
    } + {
        /// The endpoints of all members.
        ingress_endpoints: Ascii;
    }

    /// Asks a client for other credentials.
    Challenge<'a> = 7 {
        /// The request that is challenged.
        correlation_id: i64;
        /// The future session.
        cluster_session_id: i64;
    } + {
        /// Bytes of the cluster's authenticator.
        encoded_challenge: Bytes;
    }

    /// Answers a challenge.
    ChallengeResponse<'a> = 8 {
        /// The id that the next answer repeats.
        correlation_id: i64;
        /// The future session.
        cluster_session_id: i64;
    } + {
        /// Credentials for the cluster's authenticator.
        encoded_credentials: Bytes;
    }

    /// Asks for an administrative action.
    AdminRequest<'a> = 26 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// The id that the answer repeats.
        correlation_id: i64;
        /// The action: an `AdminRequestType`.
        request_type: i32;
    } + {
        /// Bytes of the request.
        payload: Bytes;
    }

    /// Answers an administrative request.
    AdminResponse<'a> = 27 {
        /// The session.
        cluster_session_id: i64;
        /// The request that is answered.
        correlation_id: i64;
        /// The action: an `AdminRequestType`.
        request_type: i32;
        /// The result: an `AdminResponseCode`.
        response_code: i32;
    } + {
        /// A reason.
        message: Ascii;
        /// Bytes of the answer.
        payload: Bytes;
    }

    /// A timer of the log.
    TimerEvent = 20 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The timer.
        correlation_id: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
    }

    /// Opens a session, in the log.
    SessionOpenEvent<'a> = 21 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The client's request.
        correlation_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The stream id of the egress.
        response_stream_id: i32;
    } + {
        /// The channel of the egress.
        response_channel: Ascii;
        /// The client's identity, as the authenticator encoded it.
        encoded_principal: Bytes;
    }

    /// Closes a session, in the log.
    SessionCloseEvent = 22 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The reason: a `CloseReason`.
        close_reason: i32;
    }

    /// Requests an action of all services, in the log.
    ClusterActionRequest = 23 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The position of the request.
        log_position: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The action: 0 to suspend, 1 to resume, 2 to take a snapshot.
        action: i32;
        /// 0 for all members, 1 for standby members.
        flags: i32, since 11;
    }

    /// Begins a leader's term, in the log.
    NewLeadershipTermEvent = 24 {
        /// The new term.
        leadership_term_id: i64;
        /// The position of the event.
        log_position: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The position at which the term begins.
        term_base_log_position: i64;
        /// The leader.
        leader_member_id: i32;
        /// The Aeron session of the leader's log.
        log_session_id: i32;
        /// The unit of timestamps: a `ClusterTimeUnit`.
        time_unit: i32, since 4;
        /// The version of the application.
        app_version: i32, null 0, since 4;
    }

    /// A service closes a session.
    CloseSession = 30 {
        /// The session.
        cluster_session_id: i64;
    }

    /// A service sets a timer.
    ScheduleTimer = 31 {
        /// The timer.
        correlation_id: i64;
        /// The deadline, in the unit of timestamps.
        deadline: i64;
    }

    /// A service cancels a timer.
    CancelTimer = 32 {
        /// The timer.
        correlation_id: i64;
    }

    /// A service acknowledges a position or an action.
    ServiceAck = 33 {
        /// The position of the log.
        log_position: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The number of the acknowledgement, from 0 without a gap.
        ack_id: i64;
        /// The id of the Aeron client, of a recording, or -1.
        relevant_id: i64;
        /// The service.
        service_id: i32;
    }

    /// Tells the services of a node which log to read.
    JoinLog<'a> = 40 {
        /// The position at which the log begins.
        log_position: i64;
        /// The position at which the log ends.
        max_log_position: i64;
        /// The node's member id.
        member_id: i32;
        /// The Aeron session of the log.
        log_session_id: i32;
        /// The stream id of the log.
        log_stream_id: i32;
        /// 1 for a term that only replays.
        is_startup: i32;
        /// 0 follower, 1 candidate, 2 leader.
        role: i32;
        /// 1 for a standby member.
        is_standby: i32, since 16;
    } + {
        /// The channel of the log.
        log_channel: Ascii;
    }

    /// Tells the services of a node where to end.
    ServiceTerminationPosition = 42 {
        /// The position of the log.
        log_position: i64;
        /// 0 if no acknowledgement is wanted.
        ack_required: i32, since 17;
    }

    /// Begins or ends a snapshot.
    SnapshotMarker = 100 {
        /// The kind of snapshot: 2 for a service.
        type_id: i64;
        /// The position of the log.
        log_position: i64;
        /// The leader's term.
        leadership_term_id: i64;
        /// The number of a section.
        index: i32;
        /// 0 begin, 1 section, 2 end.
        mark: i32;
        /// The unit of timestamps: a `ClusterTimeUnit`.
        time_unit: i32, since 4;
        /// The version of the application.
        app_version: i32, null 0, since 4;
    }

    /// A session in a snapshot.
    ClientSession<'a> = 102 {
        /// The session.
        cluster_session_id: i64;
        /// The stream id of the egress.
        response_stream_id: i32;
    } + {
        /// The channel of the egress.
        response_channel: Ascii;
        /// The client's identity, as the authenticator encoded it.
        encoded_principal: Bytes;
    }

    /// Requests an acknowledgement of all services of a node.
    RequestServiceAck = 108 {
        /// The position of the log.
        log_position: i64;
    }
}

/// Decodes an application message, and returns its payload. `None` for other messages.
#[cfg(feature = "service")]
#[inline]
pub(crate) fn parse_session_message(message: &[u8]) -> Option<(SessionMessageHeader, &[u8])> {
    let (header, body) = MessageHeader::split(message)?;
    let ids = (header.schema_id, header.template_id);
    if ids != (SCHEMA_ID, SessionMessageHeader::TEMPLATE_ID) {
        return None;
    }
    let session = SessionMessageHeader::decode(header, body)?;
    Some((session, body.get(usize::from(header.block_length)..)?))
}

/// Decodes a whole message. Returns it with the bytes behind the sender's block: the payload of a
/// [`SessionMessageHeader`]. The text of an error says why there is no message.
#[cfg(feature = "service")]
pub(crate) fn parse(message: &[u8]) -> Result<(Message<'_>, &[u8]), String> {
    let (header, body) = MessageHeader::split(message)
        .ok_or_else(|| format!("a message of {} bytes, without a header", message.len()))?;
    if header.schema_id != SCHEMA_ID {
        return Err(format!("schema {}: expected {SCHEMA_ID}", header.schema_id));
    }
    let message = Message::decode(header, body)
        .ok_or_else(|| format!("message {} is truncated", header.template_id))?;
    Ok((message, body.get(usize::from(header.block_length)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
