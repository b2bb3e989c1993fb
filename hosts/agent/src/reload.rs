//! Settings that take effect while an agent runs: the keys, and the tags in its file.

use std::path::PathBuf;

use selvedge_udp::seal::read_key_file;
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

/// Reads the settings again, and applies those that can change. `settings` are those of the last time.
pub(crate) async fn reload(
    source: &Source,
    settings: &mut Settings,
    (node, founders): (&Handle, &Founders),
    log: &Log,
) {
    match apply(source, settings, node, founders).await {
        Ok(line) => log.line(line),
        Err(failure) => log.line(format!("the settings stay as they are: {failure}")),
    }
}

async fn apply(
    source: &Source,
    settings: &mut Settings,
    node: &Handle,
    founders: &Founders,
) -> Result<String, Failure> {
    let next = source.settings()?;
    let mut line = "settings read again: ".to_owned();
    match &next.key {
        Some(path) => {
            let keys = read_key_file(path)?;
            let names: Vec<String> = keys.names().map(|it| it.to_string()).collect();
            node.set_keys(keys).await?;
            line += &format!("keys {}, the first one seals", names.join(", "));
        }
        None => line += "no keys",
    }
    // A request may have replaced tags that are in the file as they were.
    if next.tags == settings.tags {
        return Ok(line + "; the same tags");
    }
    let mut tags: Tags = next.tags.iter().collect();
    founders.mark(&mut tags);
    node.set_tags(tags).await?;
    settings.tags = next.tags;
    Ok(line + "; other tags")
}
