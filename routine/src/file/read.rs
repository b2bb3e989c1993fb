//! From bytes to a home.

use super::known::Known;
use super::tree::{LARGEST, Mark, Node, Place};
use super::{Fault, FileError, Format, Home, Lint, Mention, document, json, lint};
use crate::Catalogue;

impl Home {
    /// Reads a file in JSON: one routine, or a document.
    ///
    /// # Errors
    /// When it breaks the rules of the format. [`FileError`] names the place and the remedy.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        Self::read_with(bytes, Catalogue::new())
    }

    /// Reads a file in JSON for a home with known devices: they keep their ids, and need not be
    /// declared again.
    ///
    /// # Errors
    /// When it breaks the rules of the format. [`FileError`] names the place and the remedy.
    pub fn read_with(bytes: &[u8], catalogue: Catalogue) -> Result<Self, FileError> {
        Self::read_as(Format::Json, bytes, catalogue)
    }

    /// Reads a file in a format, for a home with known devices, as [`read_with`](Self::read_with)
    /// does.
    ///
    /// # Errors
    /// When it breaks the rules of the format. [`FileError`] names the place and the remedy.
    pub fn read_as(format: Format, bytes: &[u8], catalogue: Catalogue) -> Result<Self, FileError> {
        let node = tree(format, bytes)?;
        document::home(&node, &mut Known::new(catalogue, false))
    }

    /// Reads a file as [`read_as`](Self::read_as) does, and reports oddities: entries that can be
    /// read, and that are perhaps mistakes. In the order of the file.
    ///
    /// # Errors
    /// When it breaks the rules of the format. [`FileError`] names the place and the remedy.
    pub fn lint(
        format: Format,
        bytes: &[u8],
        catalogue: Catalogue,
    ) -> Result<(Self, alloc::vec::Vec<Lint>), FileError> {
        let node = tree(format, bytes)?;
        let mut known = Known::new(catalogue.clone(), true);
        let home = document::home(&node, &mut known)?;
        let lints = lint::find(&node, &home, &known, &catalogue);
        Ok((home, lints))
    }

    /// Reads a file as [`read_as`](Self::read_as) does, and lists the places at which it names
    /// states of devices: as an initial value, in a command and its undo, in a scene, or in a
    /// clause that tests for equality. A host needs this where a device knows only some states.
    ///
    /// # Errors
    /// When it breaks the rules of the format. [`FileError`] names the place and the remedy.
    pub fn mentions(
        format: Format,
        bytes: &[u8],
        catalogue: Catalogue,
    ) -> Result<(Self, alloc::vec::Vec<Mention>), FileError> {
        let node = tree(format, bytes)?;
        let mut known = Known::new(catalogue, true);
        let home = document::home(&node, &mut known)?;
        let uses = known.uses.unwrap_or_default().into_iter();
        let mentions = uses.filter_map(|it| {
            let (device, path) = (it.device, it.path);
            let Mark { line, column } = it.mark;
            it.state.map(|state| Mention {
                device,
                state,
                path,
                line,
                column,
            })
        });
        Ok((home, mentions.collect()))
    }
}

pub(super) fn tree(format: Format, bytes: &[u8]) -> Result<Node, FileError> {
    check_size(bytes, Mark { line: 1, column: 1 })?;
    let text = json::text(bytes)?;
    match format {
        Format::Json => json::parse(text),
        #[cfg(feature = "yaml")]
        Format::Yaml => super::yaml::parse(text),
    }
}

/// Checks the size: a larger file is neither read nor written.
pub(super) fn check_size(bytes: &[u8], mark: Mark) -> Result<(), FileError> {
    let (found, limit) = (bytes.len(), LARGEST);
    if found > limit {
        return Err(Place::Top.fault(mark, Fault::LargeFile { found, limit }));
    }
    Ok(())
}
