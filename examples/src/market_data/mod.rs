#![forbid(unsafe_code)]
#![allow(clippy::all)]
#![allow(non_camel_case_types)]
#![allow(ambiguous_glob_reexports)]

use ::core::convert::TryInto;

pub mod message_header_codec {
    use crate::market_data::*;

    pub use decoder::MessageHeaderDecoder;
    pub use encoder::MessageHeaderEncoder;

    pub const ENCODED_LENGTH: usize = 8;

    pub mod encoder {
        use super::*;

        #[derive(Debug, Default)]
        pub struct MessageHeaderEncoder<P> {
            parent: Option<P>,
            offset: usize,
        }

        impl<'a, P> Writer<'a> for MessageHeaderEncoder<P>
        where
            P: Writer<'a> + Default,
        {
            #[inline]
            fn get_buf_mut(&mut self) -> &mut WriteBuf<'a> {
                if let Some(parent) = self.parent.as_mut() {
                    parent.get_buf_mut()
                } else {
                    panic!("parent was None")
                }
            }
        }

        impl<'a, P> MessageHeaderEncoder<P>
        where
            P: Writer<'a> + Default,
        {
            pub fn wrap(mut self, parent: P, offset: usize) -> Self {
                self.parent = Some(parent);
                self.offset = offset;
                self
            }

            /// parent fns
            #[inline]
            pub fn parent(&mut self) -> SbeResult<P> {
                self.parent.take().ok_or(SbeErr::ParentNotSet)
            }

            /// primitive field 'blockLength'
            /// - min value: 0
            /// - max value: 65534
            /// - null value: 0xffff_u16
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 0
            /// - encodedLength: 2
            /// - version: 0
            #[inline]
            pub fn block_length(&mut self, value: u16) -> &mut Self {
                let offset = self.offset;
                self.get_buf_mut().put_u16_at(offset, value);
                self
            }

            /// primitive field 'templateId'
            /// - min value: 0
            /// - max value: 65534
            /// - null value: 0xffff_u16
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 2
            /// - encodedLength: 2
            /// - version: 0
            #[inline]
            pub fn template_id(&mut self, value: u16) -> &mut Self {
                let offset = self.offset + 2;
                self.get_buf_mut().put_u16_at(offset, value);
                self
            }

            /// primitive field 'schemaId'
            /// - min value: 0
            /// - max value: 65534
            /// - null value: 0xffff_u16
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 4
            /// - encodedLength: 2
            /// - version: 0
            #[inline]
            pub fn schema_id(&mut self, value: u16) -> &mut Self {
                let offset = self.offset + 4;
                self.get_buf_mut().put_u16_at(offset, value);
                self
            }

            /// primitive field 'version'
            /// - min value: 0
            /// - max value: 65534
            /// - null value: 0xffff_u16
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 6
            /// - encodedLength: 2
            /// - version: 0
            #[inline]
            pub fn version(&mut self, value: u16) -> &mut Self {
                let offset = self.offset + 6;
                self.get_buf_mut().put_u16_at(offset, value);
                self
            }

            /// Set all optional fields to their null values.
            #[inline]
            pub fn nullify_optional_fields(&mut self) -> &mut Self {
                self
            }
        }
    } // end encoder mod

    pub mod decoder {
        use super::*;

        #[derive(Debug, Default)]
        pub struct MessageHeaderDecoder<P> {
            parent: Option<P>,
            offset: usize,
        }

        impl<'a, P> ActingVersion for MessageHeaderDecoder<P>
        where
            P: Reader<'a> + ActingVersion + Default,
        {
            #[inline]
            fn acting_version(&self) -> u16 {
                self.parent.as_ref().unwrap().acting_version()
            }
        }

        impl<'a, P> Reader<'a> for MessageHeaderDecoder<P>
        where
            P: Reader<'a> + Default,
        {
            #[inline]
            fn get_buf(&self) -> &ReadBuf<'a> {
                self.parent.as_ref().expect("parent missing").get_buf()
            }
        }

        impl<'a, P> MessageHeaderDecoder<P>
        where
            P: Reader<'a> + Default,
        {
            pub fn wrap(mut self, parent: P, offset: usize) -> Self {
                self.parent = Some(parent);
                self.offset = offset;
                self
            }

            #[inline]
            pub fn parent(&mut self) -> SbeResult<P> {
                self.parent.take().ok_or(SbeErr::ParentNotSet)
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn block_length(&self) -> u16 {
                self.get_buf().get_u16_at(self.offset)
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn template_id(&self) -> u16 {
                self.get_buf().get_u16_at(self.offset + 2)
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn schema_id(&self) -> u16 {
                self.get_buf().get_u16_at(self.offset + 4)
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn version(&self) -> u16 {
                self.get_buf().get_u16_at(self.offset + 6)
            }
        }
    } // end decoder mod
}
pub mod quote_codec {
    use crate::market_data::*;

    pub use decoder::QuoteDecoder;
    pub use encoder::QuoteEncoder;

    pub use crate::market_data::SBE_SCHEMA_ID;
    pub use crate::market_data::SBE_SCHEMA_VERSION;
    pub use crate::market_data::SBE_SEMANTIC_VERSION;

    pub const SBE_BLOCK_LENGTH: u16 = 21;
    pub const SBE_TEMPLATE_ID: u16 = 1;

    pub mod encoder {
        use super::*;
        use message_header_codec::*;

        #[derive(Debug, Default)]
        pub struct QuoteEncoder<'a> {
            buf: WriteBuf<'a>,
            initial_offset: usize,
            offset: usize,
            limit: usize,
        }

        impl<'a> Writer<'a> for QuoteEncoder<'a> {
            #[inline]
            fn get_buf_mut(&mut self) -> &mut WriteBuf<'a> {
                &mut self.buf
            }
        }

        impl<'a> Encoder<'a> for QuoteEncoder<'a> {
            #[inline]
            fn get_limit(&self) -> usize {
                self.limit
            }

            #[inline]
            fn set_limit(&mut self, limit: usize) {
                self.limit = limit;
            }
        }

        impl<'a> QuoteEncoder<'a> {
            pub fn wrap(mut self, buf: WriteBuf<'a>, offset: usize) -> Self {
                let limit = offset + SBE_BLOCK_LENGTH as usize;
                self.buf = buf;
                self.initial_offset = offset;
                self.offset = offset;
                self.limit = limit;
                self
            }

            #[inline]
            pub const fn encoded_length(&self) -> usize {
                self.limit - self.offset
            }

            pub fn header(self, offset: usize) -> MessageHeaderEncoder<Self> {
                let mut header = MessageHeaderEncoder::default().wrap(self, offset);
                header.block_length(SBE_BLOCK_LENGTH);
                header.template_id(SBE_TEMPLATE_ID);
                header.schema_id(SBE_SCHEMA_ID);
                header.version(SBE_SCHEMA_VERSION);
                header
            }

            /// primitive field 'number'
            /// - min value: 0
            /// - max value: -2
            /// - null value: 0xffffffffffffffff_u64
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 0
            /// - encodedLength: 8
            /// - version: 0
            #[inline]
            pub fn number(&mut self, value: u64) -> &mut Self {
                let offset = self.offset;
                self.get_buf_mut().put_u64_at(offset, value);
                self
            }

            /// primitive field 'price'
            /// - min value: -9223372036854775807
            /// - max value: 9223372036854775807
            /// - null value: -9223372036854775808_i64
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 8
            /// - encodedLength: 8
            /// - version: 0
            #[inline]
            pub fn price(&mut self, value: i64) -> &mut Self {
                let offset = self.offset + 8;
                self.get_buf_mut().put_i64_at(offset, value);
                self
            }

            /// primitive field 'quantity'
            /// - min value: 0
            /// - max value: 4294967294
            /// - null value: 0xffffffff_u32
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 16
            /// - encodedLength: 4
            /// - version: 0
            #[inline]
            pub fn quantity(&mut self, value: u32) -> &mut Self {
                let offset = self.offset + 16;
                self.get_buf_mut().put_u32_at(offset, value);
                self
            }

            /// REQUIRED enum
            #[inline]
            pub fn side(&mut self, value: side::Side) -> &mut Self {
                let offset = self.offset + 20;
                self.get_buf_mut().put_u8_at(offset, value as u8);
                self
            }

            /// VAR_DATA ENCODER - character encoding: 'UTF-8'
            #[inline]
            pub fn venue(&mut self, value: &str) -> &mut Self {
                let limit = self.get_limit();
                let data_length = value.len().min((u16::MAX - 1) as usize);
                self.set_limit(limit + 2 + data_length);
                self.get_buf_mut().put_u16_at(limit, data_length as u16);
                self.get_buf_mut().put_slice_at(limit + 2, &value[0..data_length].as_bytes());
                self
            }
        }
    } // end encoder

    pub mod decoder {
        use super::*;
        use message_header_codec::*;

        #[derive(Clone, Copy, Debug, Default)]
        pub struct QuoteDecoder<'a> {
            buf: ReadBuf<'a>,
            initial_offset: usize,
            offset: usize,
            limit: usize,
            pub acting_block_length: u16,
            pub acting_version: u16,
        }

        impl ActingVersion for QuoteDecoder<'_> {
            #[inline]
            fn acting_version(&self) -> u16 {
                self.acting_version
            }
        }

        impl<'a> Reader<'a> for QuoteDecoder<'a> {
            #[inline]
            fn get_buf(&self) -> &ReadBuf<'a> {
                &self.buf
            }
        }

        impl<'a> Decoder<'a> for QuoteDecoder<'a> {
            #[inline]
            fn get_limit(&self) -> usize {
                self.limit
            }

            #[inline]
            fn set_limit(&mut self, limit: usize) {
                self.limit = limit;
            }
        }

        impl<'a> QuoteDecoder<'a> {
            pub fn wrap(
                mut self,
                buf: ReadBuf<'a>,
                offset: usize,
                acting_block_length: u16,
                acting_version: u16,
            ) -> Self {
                let limit = offset + acting_block_length as usize;
                self.buf = buf;
                self.initial_offset = offset;
                self.offset = offset;
                self.limit = limit;
                self.acting_block_length = acting_block_length;
                self.acting_version = acting_version;
                self
            }

            #[inline]
            pub const fn encoded_length(&self) -> usize {
                self.limit - self.offset
            }

            pub fn header(
                self,
                mut header: MessageHeaderDecoder<ReadBuf<'a>>,
                offset: usize,
            ) -> Self {
                debug_assert_eq!(SBE_TEMPLATE_ID, header.template_id());
                let acting_block_length = header.block_length();
                let acting_version = header.version();

                self.wrap(
                    header.parent().unwrap(),
                    offset + message_header_codec::ENCODED_LENGTH,
                    acting_block_length,
                    acting_version,
                )
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn number(&self) -> u64 {
                self.get_buf().get_u64_at(self.offset)
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn price(&self) -> i64 {
                self.get_buf().get_i64_at(self.offset + 8)
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn quantity(&self) -> u32 {
                self.get_buf().get_u32_at(self.offset + 16)
            }

            /// REQUIRED enum
            #[inline]
            pub fn side(&self) -> side::Side {
                self.get_buf().get_u8_at(self.offset + 20).into()
            }

            /// VAR_DATA DECODER - character encoding: 'UTF-8'
            #[inline]
            pub fn venue_decoder(&mut self) -> (usize, usize) {
                let offset = self.get_limit();
                let data_length = self.get_buf().get_u16_at(offset) as usize;
                self.set_limit(offset + 2 + data_length);
                (offset + 2, data_length)
            }

            #[inline]
            pub fn venue_slice(&'a self, coordinates: (usize, usize)) -> &'a [u8] {
                debug_assert!(self.get_limit() >= coordinates.0 + coordinates.1);
                self.get_buf().get_slice_at(coordinates.0, coordinates.1)
            }
        }
    } // end decoder
}
pub mod side {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Side {
        BID = 0x0_u8,
        ASK = 0x1_u8,
        #[default]
        NullVal = 0xff_u8,
    }
    impl From<u8> for Side {
        #[inline]
        fn from(v: u8) -> Self {
            match v {
                0x0_u8 => Self::BID,
                0x1_u8 => Self::ASK,
                _ => Self::NullVal,
            }
        }
    }
    impl From<Side> for u8 {
        #[inline]
        fn from(v: Side) -> Self {
            match v {
                Side::BID => 0x0_u8,
                Side::ASK => 0x1_u8,
                Side::NullVal => 0xff_u8,
            }
        }
    }
    impl core::str::FromStr for Side {
        type Err = ();

        #[inline]
        fn from_str(v: &str) -> core::result::Result<Self, Self::Err> {
            match v {
                "BID" => Ok(Self::BID),
                "ASK" => Ok(Self::ASK),
                _ => Ok(Self::NullVal),
            }
        }
    }
    impl core::fmt::Display for Side {
        #[inline]
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            match self {
                Self::BID => write!(f, "BID"),
                Self::ASK => write!(f, "ASK"),
                Self::NullVal => write!(f, "NullVal"),
            }
        }
    }
}
pub mod var_string_encoding_codec {
    use crate::market_data::*;

    pub use decoder::VarStringEncodingDecoder;
    pub use encoder::VarStringEncodingEncoder;

    pub mod encoder {
        use super::*;

        #[derive(Debug, Default)]
        pub struct VarStringEncodingEncoder<P> {
            parent: Option<P>,
            offset: usize,
        }

        impl<'a, P> Writer<'a> for VarStringEncodingEncoder<P>
        where
            P: Writer<'a> + Default,
        {
            #[inline]
            fn get_buf_mut(&mut self) -> &mut WriteBuf<'a> {
                if let Some(parent) = self.parent.as_mut() {
                    parent.get_buf_mut()
                } else {
                    panic!("parent was None")
                }
            }
        }

        impl<'a, P> VarStringEncodingEncoder<P>
        where
            P: Writer<'a> + Default,
        {
            pub fn wrap(mut self, parent: P, offset: usize) -> Self {
                self.parent = Some(parent);
                self.offset = offset;
                self
            }

            /// parent fns
            #[inline]
            pub fn parent(&mut self) -> SbeResult<P> {
                self.parent.take().ok_or(SbeErr::ParentNotSet)
            }

            /// primitive field 'length'
            /// - min value: 0
            /// - max value: 65534
            /// - null value: 0xffff_u16
            /// - characterEncoding: null
            /// - semanticType: null
            /// - encodedOffset: 0
            /// - encodedLength: 2
            /// - version: 0
            #[inline]
            pub fn length(&mut self, value: u16) -> &mut Self {
                let offset = self.offset;
                self.get_buf_mut().put_u16_at(offset, value);
                self
            }

            /// primitive field 'varData'
            /// - min value: 0
            /// - max value: 254
            /// - null value: 0xff_u8
            /// - characterEncoding: UTF-8
            /// - semanticType: null
            /// - encodedOffset: 2
            /// - encodedLength: -1
            /// - version: 0
            #[inline]
            pub fn var_data(&mut self, value: u8) -> &mut Self {
                let offset = self.offset + 2;
                self.get_buf_mut().put_u8_at(offset, value);
                self
            }

            /// Set all optional fields to their null values.
            #[inline]
            pub fn nullify_optional_fields(&mut self) -> &mut Self {
                self
            }
        }
    } // end encoder mod

    pub mod decoder {
        use super::*;

        #[derive(Debug, Default)]
        pub struct VarStringEncodingDecoder<P> {
            parent: Option<P>,
            offset: usize,
        }

        impl<'a, P> ActingVersion for VarStringEncodingDecoder<P>
        where
            P: Reader<'a> + ActingVersion + Default,
        {
            #[inline]
            fn acting_version(&self) -> u16 {
                self.parent.as_ref().unwrap().acting_version()
            }
        }

        impl<'a, P> Reader<'a> for VarStringEncodingDecoder<P>
        where
            P: Reader<'a> + Default,
        {
            #[inline]
            fn get_buf(&self) -> &ReadBuf<'a> {
                self.parent.as_ref().expect("parent missing").get_buf()
            }
        }

        impl<'a, P> VarStringEncodingDecoder<P>
        where
            P: Reader<'a> + Default,
        {
            pub fn wrap(mut self, parent: P, offset: usize) -> Self {
                self.parent = Some(parent);
                self.offset = offset;
                self
            }

            #[inline]
            pub fn parent(&mut self) -> SbeResult<P> {
                self.parent.take().ok_or(SbeErr::ParentNotSet)
            }

            /// primitive field - 'REQUIRED'
            #[inline]
            pub fn length(&self) -> u16 {
                self.get_buf().get_u16_at(self.offset)
            }

            /// primitive field - 'REQUIRED'
            /// characterEncoding: 'UTF-8'
            #[inline]
            pub fn var_data(&self) -> u8 {
                self.get_buf().get_u8_at(self.offset + 2)
            }
        }
    } // end decoder mod
}

pub const SBE_SCHEMA_ID: u16 = 1001;
pub const SBE_SCHEMA_VERSION: u16 = 0;
pub const SBE_SEMANTIC_VERSION: &str = "1.0";

pub type SbeResult<T> = core::result::Result<T, SbeErr>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SbeErr {
    ParentNotSet,
}
impl core::fmt::Display for SbeErr {
    #[inline]
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{self:?}")
    }
}
impl std::error::Error for SbeErr {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Either<L, R> {
    Left(L),
    Right(R),
}

pub trait Writer<'a>: Sized {
    fn get_buf_mut(&mut self) -> &mut WriteBuf<'a>;
}

pub trait Encoder<'a>: Writer<'a> {
    fn get_limit(&self) -> usize;
    fn set_limit(&mut self, limit: usize);
    fn nullify_optional_fields(&mut self) -> &mut Self {
        self
    }
}

pub trait ActingVersion {
    fn acting_version(&self) -> u16;
}

pub trait Reader<'a>: Sized {
    fn get_buf(&self) -> &ReadBuf<'a>;
}

pub trait Decoder<'a>: Reader<'a> {
    fn get_limit(&self) -> usize;
    fn set_limit(&mut self, limit: usize);
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ReadBuf<'a> {
    data: &'a [u8],
}
impl<'a> Reader<'a> for ReadBuf<'a> {
    #[inline]
    fn get_buf(&self) -> &ReadBuf<'a> {
        self
    }
}
#[allow(dead_code)]
impl<'a> ReadBuf<'a> {
    #[inline]
    pub const fn new(data: &'a [u8]) -> Self {
        Self { data }
    }

    #[inline]
    pub(crate) fn get_bytes_at<const N: usize>(slice: &[u8], index: usize) -> [u8; N] {
        slice[index..index + N].try_into().expect("slice with incorrect length")
    }

    #[inline]
    pub const fn get_u8_at(&self, index: usize) -> u8 {
        self.data[index]
    }

    #[inline]
    pub fn get_i8_at(&self, index: usize) -> i8 {
        i8::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_i16_at(&self, index: usize) -> i16 {
        i16::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_i32_at(&self, index: usize) -> i32 {
        i32::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_i64_at(&self, index: usize) -> i64 {
        i64::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_u16_at(&self, index: usize) -> u16 {
        u16::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_u32_at(&self, index: usize) -> u32 {
        u32::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_u64_at(&self, index: usize) -> u64 {
        u64::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_f32_at(&self, index: usize) -> f32 {
        f32::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_f64_at(&self, index: usize) -> f64 {
        f64::from_le_bytes(Self::get_bytes_at(self.data, index))
    }

    #[inline]
    pub fn get_slice_at(&self, index: usize, len: usize) -> &[u8] {
        &self.data[index..index + len]
    }
}

#[derive(Debug, Default)]
pub struct WriteBuf<'a> {
    data: &'a mut [u8],
}
impl<'a> WriteBuf<'a> {
    pub const fn new(data: &'a mut [u8]) -> Self {
        Self { data }
    }

    #[inline]
    pub fn put_bytes_at<const COUNT: usize>(&mut self, index: usize, bytes: &[u8; COUNT]) -> usize {
        self.data[index..index + COUNT].copy_from_slice(bytes);
        COUNT
    }

    #[inline]
    pub const fn put_u8_at(&mut self, index: usize, value: u8) {
        self.data[index] = value;
    }

    #[inline]
    pub fn put_i8_at(&mut self, index: usize, value: i8) {
        self.put_bytes_at(index, &i8::to_le_bytes(value));
    }

    #[inline]
    pub fn put_i16_at(&mut self, index: usize, value: i16) {
        self.put_bytes_at(index, &i16::to_le_bytes(value));
    }

    #[inline]
    pub fn put_i32_at(&mut self, index: usize, value: i32) {
        self.put_bytes_at(index, &i32::to_le_bytes(value));
    }

    #[inline]
    pub fn put_i64_at(&mut self, index: usize, value: i64) {
        self.put_bytes_at(index, &i64::to_le_bytes(value));
    }

    #[inline]
    pub fn put_u16_at(&mut self, index: usize, value: u16) {
        self.put_bytes_at(index, &u16::to_le_bytes(value));
    }

    #[inline]
    pub fn put_u32_at(&mut self, index: usize, value: u32) {
        self.put_bytes_at(index, &u32::to_le_bytes(value));
    }

    #[inline]
    pub fn put_u64_at(&mut self, index: usize, value: u64) {
        self.put_bytes_at(index, &u64::to_le_bytes(value));
    }

    #[inline]
    pub fn put_f32_at(&mut self, index: usize, value: f32) {
        self.put_bytes_at(index, &f32::to_le_bytes(value));
    }

    #[inline]
    pub fn put_f64_at(&mut self, index: usize, value: f64) {
        self.put_bytes_at(index, &f64::to_le_bytes(value));
    }

    #[inline]
    pub fn put_slice_at(&mut self, index: usize, src: &[u8]) -> usize {
        let len = src.len();
        let dest = self.data.split_at_mut(index).1.split_at_mut(len).0;
        dest.clone_from_slice(src);
        len
    }
}
impl<'a> From<&'a mut WriteBuf<'a>> for &'a mut [u8] {
    #[inline]
    fn from(buf: &'a mut WriteBuf<'a>) -> &'a mut [u8] {
        buf.data
    }
}
