//! Settings that take effect while an agent runs: the keys, and the tags in its file.

use std::path::PathBuf;

use selvedge_udp::{Handle, Tags};

use crate::Failure;
use crate::config::Settings;
use crate::growth::Founders;
use crate::log::Log;

/// The places that settings come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The flags and the environment, which stand above the file.
    pub flags: Settings,
    /// A file in TOML.
    pub file: Option<PathBuf>,
}

impl Source {
    /// The settings as of now.
    ///
    /// # Errors
    /// When the file cannot be read, or a name or a value in it is wrong.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let file = self.file.as_deref().map(Settings::read).transpose()?;
        Ok(self.flags.clone().over(file.unwrap_or_default()))
    }
}

/// Reads the settings again, and applies those that can change. `settings` are those in force.
pub(crate) async fn reload(
    source: &Source,
    settings: &mut Settings,
    (node, founders): (&Handle, &Founders),
    log: &Log,
) {
    let next = match source.settings() {
        Ok(next) => next,
        Err(failure) => {
            log.line(format!("the settings stay as they are: {failure}"));
            return;
        }
    };
    log.line(match set_keys(settings, &next, node).await {
        Ok(line) => line,
        Err(failure) => format!("the keys stay as they are: {failure}"),
    });
    // A request may have replaced tags that are in the file as they were.
    if next.tags == settings.tags {
        return;
    }
    let mut tags: Tags = next.tags.iter().collect();
    founders.mark(&mut tags);
    log.line(match node.set_tags(tags).await {
        Ok(()) => {
            settings.tags = next.tags;
            "the tags are those in the settings".into()
        }
        Err(error) => format!("the tags stay as they are: {error}"),
    });
}

/// Gives the node the keys that the file has now. Returns a line about it.
async fn set_keys(settings: &Settings, next: &Settings, node: &Handle) -> Result<String, Failure> {
    let line = match (&settings.key, &next.key) {
        (None, None) => "this node sends in the clear, as before",
        (None, Some(_)) => "this node sends in the clear, and has its keys at the next start",
        (Some(_), None) => "the keys stay as they are: the settings name no key file",
        (Some(_), Some(path)) => {
            let keys = next.keys(path)?;
            let names: Vec<String> = keys.names().map(|it| it.to_string()).collect();
            node.set_keys(keys).await?;
            let names = names.join(", ");
            return Ok(format!("keys from now on: {names}; the first one seals"));
        }
    };
    Ok(line.into())
}
