//! Reading.

use serde::Deserializer;
use serde::de::{
    DeserializeSeed, EnumAccess, IntoDeserializer, SeqAccess, VariantAccess, Visitor, value,
};

use super::Malformed;

/// What is left to read. A number that cannot be read is 0, and the whole is malformed then.
pub(super) struct Reader<'de> {
    left: &'de [u8],
    is_malformed: bool,
}

impl<'de> Reader<'de> {
    pub(super) const fn new(bytes: &'de [u8]) -> Self {
        Self {
            left: bytes,
            is_malformed: false,
        }
    }

    /// Whether all was read, and could be.
    pub(super) const fn is_done(&self) -> bool {
        self.left.is_empty() && !self.is_malformed
    }

    #[inline(never)]
    fn byte(&mut self) -> u8 {
        let Some((&byte, left)) = self.left.split_first() else {
            self.is_malformed = true;
            return 0;
        };
        self.left = left;
        byte
    }

    /// A number of so many bits, seven in each byte, the lowest first.
    #[inline(never)]
    fn number(&mut self, bits: u32) -> u64 {
        let mut number = 0;
        let mut shift = 0;
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            // In the last byte that there can be, neither these bits nor the mark that the number
            // goes on.
            if bits - shift < 7 && byte >> (bits - shift) != 0 {
                self.is_malformed = true;
                return 0;
            }
            if byte < 0x80 {
                return number;
            }
            shift += 7;
        }
    }

    fn short(&mut self) -> u32 {
        self.number(u32::BITS) as u32
    }

    fn text(&mut self) -> &'de str {
        let len = self.short() as usize;
        let text = self.left.split_at_checked(len);
        let Some((Ok(text), left)) = text.map(|(text, left)| (str::from_utf8(text), left)) else {
            self.is_malformed = true;
            return "";
        };
        self.left = left;
        text
    }

    /// 0 or 1.
    #[inline(never)]
    fn flag(&mut self) -> bool {
        let byte = self.byte();
        self.is_malformed |= byte > 1;
        byte == 1
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Malformed;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Malformed> {
        Err(Malformed)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_bool(self.flag())
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_u8(self.byte())
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_u16(self.number(u16::BITS) as u16)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_u32(self.short())
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_u64(self.number(u64::BITS))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_borrowed_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        if self.flag() {
            visitor.visit_some(self)
        } else {
            visitor.visit_none()
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Malformed> {
        let left = self.short();
        if self.is_malformed {
            return Err(Malformed);
        }
        visitor.visit_seq(Items { from: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_seq(Fields {
            from: self,
            left: len,
        })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u128 f32 f64 char bytes byte_buf map identifier ignored_any
    }
}

/// The fields of a struct or tuple.
struct Fields<'a, 'de> {
    from: &'a mut Reader<'de>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Fields<'_, 'de> {
    type Error = Malformed;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.from).map(Some)
    }
}

/// The items of a list that claims to have so many left.
struct Items<'a, 'de> {
    from: &'a mut Reader<'de>,
    left: u32,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = Malformed;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let item = seed.deserialize(&mut *self.from)?;
        // A list ends at the latest where the bytes do.
        if self.from.is_malformed {
            return Err(Malformed);
        }
        Ok(Some(item))
    }
}

impl<'de> EnumAccess<'de> for &mut Reader<'de> {
    type Error = Malformed;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Malformed> {
        let variant: value::U32Deserializer<Malformed> = self.short().into_deserializer();
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Reader<'de> {
    type Error = Malformed;

    fn unit_variant(self) -> Result<(), Malformed> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Malformed> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Malformed> {
        self.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Malformed> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}
