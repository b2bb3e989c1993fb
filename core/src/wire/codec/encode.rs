//! Writing.

use serde::ser::{
    Impossible, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant,
};
use serde::{Serialize, Serializer};

use super::NotWritten;

/// Where to write. What finds no room is counted.
pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(super) const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// How long all is that was written, with what found no room.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline(never)]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
        }
        self.len += 1;
    }

    /// Seven bits in each byte, the lowest first.
    #[inline(never)]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }
}

/// What no message of these crates has in it.
macro_rules! unsupported {
    ($($name:ident($kind:ty))*) => {
        $(fn $name(self, _: $kind) -> Written {
            Err(NotWritten::Unsupported)
        })*
    };
}

/// Parts of a message are written one after the other, whatever they are parts of.
macro_rules! parts {
    ($($parts:ident: $one:ident($($key:ty)?))*) => {
        $(impl $parts for &mut Writer<'_> {
            type Ok = ();
            type Error = NotWritten;

            fn $one<T: Serialize + ?Sized>(&mut self, $(_: $key,)? part: &T) -> Written {
                part.serialize(&mut **self)
            }

            fn end(self) -> Written {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq: serialize_element()
    SerializeTuple: serialize_element()
    SerializeTupleStruct: serialize_field()
    SerializeTupleVariant: serialize_field()
    SerializeStruct: serialize_field(&'static str)
    SerializeStructVariant: serialize_field(&'static str)
}

type Written = Result<(), NotWritten>;

impl Serializer for &mut Writer<'_> {
    type Ok = ();
    type Error = NotWritten;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Impossible<(), NotWritten>;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Written {
        self.serialize_u8(value.into())
    }

    fn serialize_u8(self, value: u8) -> Written {
        self.byte(value);
        Ok(())
    }

    fn serialize_u16(self, value: u16) -> Written {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Written {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Written {
        self.number(value);
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Written {
        self.number(text.len() as u64);
        text.bytes().for_each(|byte| self.byte(byte));
        Ok(())
    }

    fn serialize_none(self) -> Written {
        self.serialize_bool(false)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        self.byte(1);
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, variant: u32, _: &'static str) -> Written {
        self.serialize_u32(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        value: &T,
    ) -> Written {
        self.number(variant.into());
        value.serialize(self)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self, NotWritten> {
        let len = len.ok_or(NotWritten::Unsupported)?;
        self.number(len as u64);
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, NotWritten> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, NotWritten> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotWritten> {
        self.number(variant.into());
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, NotWritten> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        variant: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotWritten> {
        self.number(variant.into());
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, NotWritten> {
        Err(NotWritten::Unsupported)
    }

    fn collect_str<T: core::fmt::Display + ?Sized>(self, _: &T) -> Written {
        Err(NotWritten::Unsupported)
    }

    unsupported! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_f32(f32) serialize_f64(f64)
        serialize_char(char) serialize_bytes(&[u8])
    }
}
