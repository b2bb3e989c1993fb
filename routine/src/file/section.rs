//! The part of a file that a host reads by itself. Feature `serde`.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer,
    MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::fields::named;
use super::tree::{Data, Entry, Mark, Node, Place};
use super::{Fault, FileError, Format, read};

/// Reads the host's own part of a document, at a key such as `hub`, which
/// [`Home::read_as`](super::Home::read_as) accepts without reading it. `None` if the document does
/// not have it.
///
/// Both formats mean the same: a number is one of 64 bits or a float, and an enum is a word, or an
/// object with one key.
///
/// # Errors
/// When the file is no text of its format, or its part does not fit the type: with its place.
pub fn section<T: DeserializeOwned>(
    format: Format,
    bytes: &[u8],
    key: &str,
) -> Result<Option<T>, FileError> {
    let node = read::tree(format, bytes)?;
    let Data::Map(entries) = &node.data else {
        return Ok(None);
    };
    let Some(entry) = entries.iter().find(|it| it.key == key) else {
        return Ok(None);
    };
    let (top, node) = (Place::Top, &entry.value);
    let place = top.key(key);
    let read = T::deserialize(Reader { node, place });
    read.map(Some).map_err(|it| it.file(node.mark, &place))
}

/// The reason why a type does not accept a value.
#[derive(Debug)]
enum Wrong {
    /// With its place.
    Placed(FileError),
    Named(String),
}

impl Wrong {
    /// Gives an error without a place this place.
    fn file(self, mark: Mark, place: &Place<'_>) -> FileError {
        match self {
            Self::Placed(error) => error,
            Self::Named(why) => place.fault(mark, Fault::OfHost(why)),
        }
    }

    fn at(self, mark: Mark, place: &Place<'_>) -> Self {
        Self::Placed(self.file(mark, place))
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placed(error) => error.fmt(f),
            Self::Named(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for Wrong {}

impl Error for Wrong {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::Named(why.to_string())
    }
}

/// A value and its place. As deep on the stack as it is nested, which the readers limit.
#[derive(Clone, Copy)]
struct Reader<'a> {
    node: &'a Node,
    place: Place<'a>,
}

impl<'a> Reader<'a> {
    fn entries(&self) -> Result<&'a [Entry], Wrong> {
        named(self.node, &self.place, "an object").map_err(Wrong::Placed)
    }

    fn any<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.data {
            Data::Null => visitor.visit_unit(),
            Data::Bool(it) => visitor.visit_bool(*it),
            Data::Number(text) => {
                if let Ok(it) = text.parse() {
                    visitor.visit_u64(it)
                } else if let Ok(it) = text.parse() {
                    visitor.visit_i64(it)
                } else if let Ok(it) = text.parse() {
                    visitor.visit_f64(it)
                } else {
                    let found = self.node.shown();
                    Err(Wrong::Named(format!("found {found}: give a number")))
                }
            }
            Data::Word(text) => visitor.visit_str(text),
            Data::List(nodes) => {
                let (place, nth) = (&self.place, 0);
                let mut list = List { nodes, place, nth };
                let read = visitor.visit_seq(&mut list)?;
                if list.nodes.is_empty() {
                    Ok(read)
                } else {
                    let (found, taken) = (nodes.len(), list.nth);
                    Err(Wrong::Named(format!("found {found} entries: give {taken}")))
                }
            }
            Data::Map(_) => visitor.visit_map(Map {
                entries: self.entries()?,
                value: None,
                place: &self.place,
            }),
        }
    }

    fn one_of<'de, V: Visitor<'de>>(&self, visitor: V) -> Result<V::Value, Wrong> {
        if let Data::Word(text) = &self.node.data {
            return visitor.visit_enum(text.as_str().into_deserializer());
        }
        match self.entries()? {
            [entry] => visitor.visit_enum(Variant {
                entry,
                place: &self.place,
            }),
            several => {
                let found = several.len();
                Err(Wrong::Named(format!("{found} keys are there: give one")))
            }
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let read = self.any(visitor);
        read.map_err(|it| it.at(self.node.mark, &self.place))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.data {
            Data::Null => visitor.visit_none(),
            Data::Bool(_) | Data::Number(_) | Data::Word(_) | Data::List(_) | Data::Map(_) => {
                visitor.visit_some(self)
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let read = visitor.visit_newtype_struct(self);
        read.map_err(|it| it.at(self.node.mark, &self.place))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let read = self.one_of(visitor);
        read.map_err(|it| it.at(self.node.mark, &self.place))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct List<'a> {
    nodes: &'a [Node],
    place: &'a Place<'a>,
    nth: usize,
}

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let Some((node, rest)) = self.nodes.split_first() else {
            return Ok(None);
        };
        let place = self.place.nth(self.nth);
        self.nodes = rest;
        self.nth += 1;
        seed.deserialize(Reader { node, place }).map(Some)
    }
}

struct Map<'a> {
    entries: &'a [Entry],
    value: Option<&'a Entry>,
    place: &'a Place<'a>,
}

fn key<'de, T: DeserializeSeed<'de>>(
    seed: T,
    entry: &Entry,
    place: &Place<'_>,
) -> Result<T::Value, Wrong> {
    let key: StrDeserializer<'_, Wrong> = entry.key.as_str().into_deserializer();
    let read = seed.deserialize(key);
    read.map_err(|it| it.at(entry.mark, &place.key(&entry.key)))
}

fn value<'de, T: DeserializeSeed<'de>>(
    seed: T,
    entry: &Entry,
    place: &Place<'_>,
) -> Result<T::Value, Wrong> {
    let (node, place) = (&entry.value, place.key(&entry.key));
    seed.deserialize(Reader { node, place })
}

impl<'de> MapAccess<'de> for Map<'_> {
    type Error = Wrong;

    fn next_key_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong> {
        let Some((entry, rest)) = self.entries.split_first() else {
            return Ok(None);
        };
        self.entries = rest;
        self.value = Some(entry);
        key(seed, entry, self.place).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Wrong> {
        match self.value.take() {
            Some(entry) => value(seed, entry, self.place),
            None => Err(Wrong::Named("a value is read before its key".into())),
        }
    }
}

/// An object with one key.
struct Variant<'a> {
    entry: &'a Entry,
    place: &'a Place<'a>,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Wrong> {
        Ok((key(seed, self.entry, self.place)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        value(core::marker::PhantomData, self.entry, self.place)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong> {
        value(seed, self.entry, self.place)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        self.read(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.read(visitor)
    }
}

impl Variant<'_> {
    fn read<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let (node, place) = (&self.entry.value, self.place.key(&self.entry.key));
        Reader { node, place }.deserialize_any(visitor)
    }
}
