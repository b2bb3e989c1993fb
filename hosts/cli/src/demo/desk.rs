//! A file, and the nodes that take turns at writing it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chacha20::ChaCha12Rng;
use core::time::Duration;
use rand_core::SeedableRng;
use selvedge_camera::Token;
use selvedge_core::shared::gate::EnterError;
use selvedge_core::{Choose, NodeId, Span, Time};
use tokio::time::sleep;

use super::turns::{Turns, Write};
use selvedge_udp::{Clock, Gate};

/// The name of the section.
pub(crate) const SECTION: &str = "the file";
/// The time for which a node writes.
pub(crate) const WRITING: Span = Span::millis(10);
/// The shortest and the longest pause of a node between two turns, in milliseconds.
const THINKING: (u64, u64) = (100, 300);

/// The file, in a temporary directory of its own. Every write opens it again.
#[derive(Debug)]
pub(crate) struct Desk {
    clock: Clock,
    place: PathBuf,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// The highest token that a write had: lower ones are refused.
    highest: Token,
    /// The nodes that wait, with the time when each began.
    waiting: BTreeMap<NodeId, Time>,
    waits: Vec<Span>,
    refused: usize,
    stale: usize,
    failed: usize,
    is_closed: bool,
}

impl Desk {
    /// An empty file. If it cannot be created, every write fails, and that is counted.
    pub(crate) fn new(clock: Clock, seed: u64) -> Self {
        let name = format!("selvedge-turns-{}-{seed}", std::process::id());
        let place = std::env::temp_dir().join(name);
        let mut book = Book::default();
        let made = fs::create_dir_all(&place).and_then(|()| File::create(file(&place)));
        book.failed += usize::from(made.is_err());
        let book = Mutex::new(book);
        Self { clock, place, book }
    }

    /// Takes turns, for one life of one node, until its gate or the desk is closed.
    pub(crate) async fn take_turns(self: Arc<Self>, node: NodeId, gate: Gate, seed: u64) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        loop {
            let (least, most) = THINKING;
            sleep(Duration::from_millis(least + rng.below(most - least))).await;
            if self.begin_to_wait(node) {
                return;
            }
            let guard = loop {
                match gate.enter().await {
                    Ok(guard) => break guard,
                    Err(EnterError::Closed) => return self.forget(node),
                    Err(_) => {
                        self.book().refused += 1;
                        sleep(Duration::from_millis(least)).await;
                    }
                }
            };
            if self.got_in(node) {
                return;
            }
            let written = self.write(node, guard.token()).await;
            self.book().failed += usize::from(written.is_err());
            guard.exit();
        }
    }

    /// Removes a failed node from the nodes that wait.
    pub(crate) fn forget(&self, node: NodeId) {
        self.book().waiting.remove(&node);
    }

    /// Ends the writing: no node begins to write any more, and the waiting times end now.
    pub(crate) fn close(&self) {
        let now = self.clock.now();
        let mut book = self.book();
        book.is_closed = true;
        for (_, since) in core::mem::take(&mut book.waiting) {
            book.waits.push(now.since(since));
        }
    }

    /// The contents of the file, with the counters.
    pub(crate) fn turns(&self) -> Turns {
        let text = fs::read_to_string(file(&self.place));
        let mut turns = Turns::read(text.as_deref().unwrap_or_default());
        let book = self.book();
        turns.garbled += book.failed + usize::from(text.is_err());
        turns.waits.clone_from(&book.waits);
        (turns.refused, turns.stale) = (book.refused, book.stale);
        turns
    }

    /// Notes that a node waits. Returns true if the desk is closed.
    fn begin_to_wait(&self, node: NodeId) -> bool {
        let now = self.clock.now();
        let mut book = self.book();
        book.waiting.insert(node, now);
        book.is_closed
    }

    fn got_in(&self, node: NodeId) -> bool {
        let now = self.clock.now();
        let mut book = self.book();
        if let Some(since) = book.waiting.remove(&node) {
            book.waits.push(now.since(since));
        }
        book.is_closed
    }

    /// Writes the beginning of a line, waits for [`WRITING`], and writes its end.
    async fn write(&self, node: NodeId, token: Token) -> io::Result<()> {
        {
            let mut book = self.book();
            if token < book.highest {
                book.stale += 1;
                return Ok(());
            }
            book.highest = token;
        }
        let write = Write {
            node,
            token,
            start: self.clock.now(),
            end: None,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(file(&self.place))?;
        let mut beginning = write.beginning();
        if !ends_with_a_line(&mut file)? {
            // The node that wrote before did not finish its line.
            beginning.insert(0, '\n');
        }
        file.write_all(beginning.as_bytes())?;
        sleep(WRITING.into()).await;
        file.write_all(Write::ending(self.clock.now()).as_bytes())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing panics while the lock is held, and the counters are valid at any moment.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // A file that stays is harmless in a temporary directory.
        let _removed = fs::remove_dir_all(&self.place).is_ok();
    }
}

fn file(place: &Path) -> PathBuf {
    place.join("turns.txt")
}

fn ends_with_a_line(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
