//! The lists in messages.

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::slice;

use smallvec::SmallVec;

/// A list in a message. Up to `N` items need no allocation.
///
/// It is decoded item by item: a length that a frame only claims reserves no memory. So the memory
/// for a frame is bounded by its actual content, and a list has room for at most twice its items.
/// (A `Vec` or a `SmallVec` reserves the claimed length.)
///
/// Equal to the slice of its items in comparison, hash, output and encoding.
///
/// ```
/// use selvedge_core::wire::List;
///
/// let mut list: List<u8, 4> = (1..=3).collect();
/// list.push(9);
/// assert_eq!(*list, [1, 2, 3, 9]);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List<T, const N: usize>(SmallVec<[T; N]>);

impl<T, const N: usize> List<T, N> {
    /// A list without items.
    #[must_use]
    pub fn new() -> Self {
        Self(SmallVec::new())
    }

    /// Appends `item`. O(1), amortized.
    pub fn push(&mut self, item: T) {
        self.0.push(item);
    }

    /// Removes the items for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|item| keep(item));
    }
}

impl<T, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for List<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for List<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T, const N: usize> FromIterator<T> for List<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = Self::new();
        list.extend(items);
        list
    }
}

impl<T, const N: usize> Extend<T> for List<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        // `SmallVec::extend` has one loop for the reserved room and another for the rest.
        let items = items.into_iter();
        self.0.reserve(items.size_hint().0);
        for item in items {
            self.push(item);
        }
    }
}

/// The items of a [`List`], taken out of it.
#[derive(Debug)]
pub struct IntoIter<T, const N: usize>(smallvec::IntoIter<[T; N]>);

impl<T, const N: usize> Iterator for IntoIter<T, N> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T, const N: usize> ExactSizeIterator for IntoIter<T, N> {}

impl<T, const N: usize> IntoIterator for List<T, N> {
    type Item = T;
    type IntoIter = IntoIter<T, N>;
    fn into_iter(self) -> IntoIter<T, N> {
        IntoIter(self.0.into_iter())
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a List<T, N> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;
    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

#[cfg(feature = "arbitrary")]
impl<'a, T: arbitrary::Arbitrary<'a>, const N: usize> arbitrary::Arbitrary<'a> for List<T, N> {
    fn arbitrary(input: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        input.arbitrary_iter()?.collect()
    }
}

#[cfg(feature = "serde")]
impl<T: serde::Serialize, const N: usize> serde::Serialize for List<T, N> {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        super::items::serialize(self, to)
    }
}

#[cfg(feature = "serde")]
impl<'de, T: serde::Deserialize<'de>, const N: usize> serde::Deserialize<'de> for List<T, N> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        super::items::one_by_one(from)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_list_is_its_slice() {
        for len in 0..9_u8 {
            let list: List<u8, 4> = (0..len).collect();
            let vec: Vec<u8> = (0..len).collect();
            assert_eq!(*list, *vec);
            assert_eq!(format!("{list:?}"), format!("{vec:?}"));
            assert!(list.iter().eq(&list) && list.clone().into_iter().eq(vec));
            assert_eq!(list.clone().into_iter().len(), usize::from(len));
        }
    }

    #[test]
    fn a_list_grows_and_shrinks() {
        let mut list = List::<u8, 2>::new();
        assert!(list.is_empty());
        list.extend(1..=5);
        list.push(6);
        list.retain(|item| item % 2 == 0);
        list[0] = 8;
        assert_eq!(*list, [8, 4, 6]);
    }

    #[cfg(feature = "arbitrary")]
    #[test]
    fn an_arbitrary_list_is_an_arbitrary_vec() {
        use arbitrary::{Arbitrary, Unstructured};

        let bytes: Vec<u8> = (1..=64).collect();
        for len in 0..bytes.len() {
            let input = || Unstructured::new(&bytes[..len]);
            let list = List::<u8, 4>::arbitrary(&mut input()).unwrap();
            let vec = Vec::<u8>::arbitrary(&mut input()).unwrap();
            assert_eq!(*list, *vec, "of {len} bytes");
        }
    }
}
