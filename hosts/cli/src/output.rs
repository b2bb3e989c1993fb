//! Output to a reader that may stall: lines are queued, and a separate thread writes them.
//!
//! A write into a pipe without an active reader blocks. A node that blocks answers no message, and
//! the other nodes declare it failed. So a program that runs a protocol writes through an
//! [`Output`]: queueing a line never waits, the queue is bounded, and a line marks each place where
//! lines found no room, with their number.

use core::time::Duration;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// A handle on the queue of a writer thread. Clones share the queue.
///
/// As a [`Write`], it queues a line when it receives the line's end, and never fails.
#[derive(Clone, Debug)]
pub struct Output {
    shared: Arc<Shared>,
    /// The beginning of an incomplete line.
    begun: Vec<u8>,
}

/// Lines that were dropped at one place, because they found no room in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The number of lines missing here.
    pub lines: u64,
    /// The number of lines missing from the beginning to here.
    pub in_all: u64,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug)]
struct Queue {
    entries: VecDeque<Entry>,
    /// The length of all waiting lines.
    bytes: usize,
    limit: usize,
    dropped: u64,
    /// The entry that the writer has taken and not finished.
    writing: Option<Writing>,
    /// True once no more lines are accepted.
    is_closed: bool,
}

#[derive(Debug)]
enum Entry {
    Line(Vec<u8>),
    /// The number of lines missing here.
    Gap(u64),
}

/// The kind of the entry that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Line,
    Gap,
}

impl Output {
    /// The default number of bytes that may wait: as many as a pipe holds.
    pub const LIMIT: usize = 1 << 16;

    /// Starts a thread that writes to `sink`. Up to `limit` bytes of lines wait for it; `missing`
    /// makes the line that stands where others were dropped.
    ///
    /// The receiver gets the error once if `sink` refuses a line; from then on nothing is written.
    ///
    /// # Errors
    /// When the system has no thread.
    pub fn start(
        sink: impl Write + Send + 'static,
        limit: usize,
        missing: impl Fn(Dropped) -> String + Send + 'static,
    ) -> io::Result<(Self, oneshot::Receiver<io::Error>)> {
        let queue = Queue {
            entries: VecDeque::new(),
            bytes: 0,
            limit,
            dropped: 0,
            writing: None,
            is_closed: false,
        };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            changed: Condvar::new(),
        });
        let (broken, is_broken) = oneshot::channel();
        let written = Arc::clone(&shared);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                if let Err(error) = written.write_all(sink, missing) {
                    written.give_up();
                    // The receiver may have been dropped.
                    let _notified = broken.send(error).is_ok();
                }
            })?;
        let begun = Vec::new();
        Ok((Self { shared, begun }, is_broken))
    }

    /// Queues a line (without its end), or drops and counts it. Never waits.
    pub fn line(&self, line: impl Into<Vec<u8>>) {
        let mut line = line.into();
        line.push(b'\n');
        self.shared.queue().push(line);
        self.shared.changed.notify_all();
    }

    /// The number of lines dropped until now.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.queue().dropped
    }

    /// Accepts no more lines and waits until all queued lines are written, at most for `patience`;
    /// `None` waits for as long as it takes. Returns the number of lines not written, from the
    /// beginning; lines that came after the sink refused one are not counted.
    pub fn finish(self, patience: Option<Duration>) -> u64 {
        let mut queue = self.shared.queue();
        queue.is_closed = true;
        self.shared.changed.notify_all();
        let is_busy = |queue: &mut Queue| queue.writing.is_some() || !queue.entries.is_empty();
        let changed = &self.shared.changed;
        queue = match patience {
            Some(patience) => {
                let waited = changed.wait_timeout_while(queue, patience, is_busy);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = changed.wait_while(queue, is_busy);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        let lines = (queue.entries.iter()).filter(|it| matches!(it, Entry::Line(_)));
        queue.dropped + lines.count() as u64 + u64::from(queue.writing == Some(Writing::Line))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut parts = bytes.split(|&byte| byte == b'\n');
        if let Some(first) = parts.next() {
            self.begun.extend(first);
        }
        for part in parts {
            let line = core::mem::take(&mut self.begun);
            self.line(line);
            self.begun.extend(part);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes queued lines until the queue is closed and empty. Blocks only in `sink`, where the
    /// queue is not locked.
    fn write_all(
        &self,
        mut sink: impl Write,
        missing: impl Fn(Dropped) -> String,
    ) -> io::Result<()> {
        let mut in_all = 0;
        while let Some(entry) = self.next() {
            let line = match entry {
                Entry::Line(line) => line,
                Entry::Gap(lines) => {
                    in_all += lines;
                    let mut line = missing(Dropped { lines, in_all }).into_bytes();
                    line.push(b'\n');
                    line
                }
            };
            sink.write_all(&line)?;
            sink.flush()?;
        }
        Ok(())
    }

    /// The next entry, once the last one is written; waits for it.
    fn next(&self) -> Option<Entry> {
        let mut queue = self.queue();
        queue.writing = None;
        self.changed.notify_all();
        let is_idle = |queue: &mut Queue| queue.entries.is_empty() && !queue.is_closed;
        let waited = self.changed.wait_while(queue, is_idle);
        queue = waited.unwrap_or_else(PoisonError::into_inner);
        queue.pop()
    }

    fn give_up(&self) {
        let mut queue = self.queue();
        queue.writing = None;
        queue.is_closed = true;
        queue.entries.clear();
        self.changed.notify_all();
    }
}

impl Queue {
    fn push(&mut self, line: Vec<u8>) {
        if self.is_closed {
            return;
        }
        // A line longer than the queue still fits an empty one.
        if self.bytes == 0 || self.bytes + line.len() <= self.limit {
            self.bytes += line.len();
            return self.entries.push_back(Entry::Line(line));
        }
        self.dropped += 1;
        match self.entries.back_mut() {
            Some(Entry::Gap(lines)) => *lines += 1,
            Some(Entry::Line(_)) | None => self.entries.push_back(Entry::Gap(1)),
        }
    }

    fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.writing = Some(match &entry {
            Entry::Line(line) => {
                self.bytes -= line.len();
                Writing::Line
            }
            Entry::Gap(_) => Writing::Gap,
        });
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha8Rng;
    use rand_core::SeedableRng;
    use selvedge_core::Choose;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Blocks until each write is received.
    struct Slow(SyncSender<Vec<u8>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.0.send(bytes.to_vec());
            sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow(limit: usize) -> (Output, oneshot::Receiver<io::Error>, Receiver<Vec<u8>>) {
        let (sender, reader) = sync_channel(0);
        let missing = |it: Dropped| format!("missing {} {}", it.lines, it.in_all);
        let (output, closed) = Output::start(Slow(sender), limit, missing).unwrap();
        (output, closed, reader)
    }

    fn read(reader: &Receiver<Vec<u8>>) -> String {
        String::from_utf8(reader.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    /// Waits until at most `waiting` entries are left in the queue.
    fn until_taken(output: &Output, waiting: usize) {
        while output.shared.queue().entries.len() > waiting {
            thread::yield_now();
        }
    }

    #[test]
    fn what_finds_no_room_is_counted_where_it_is_missing() {
        let (output, _closed, reader) = slow(6);
        output.line("a");
        until_taken(&output, 0);
        // Room for three lines of two bytes each.
        for line in ["b", "c", "d", "x", "y"] {
            output.line(line);
        }
        assert_eq!(output.dropped(), 2);
        for line in ["a\n", "b\n", "c\n"] {
            assert_eq!(read(&reader), line);
        }
        output.line("e");
        output.line("f");
        output.line("much too long");
        for line in ["d\n", "missing 2 2\n", "e\n", "f\n", "missing 1 3\n"] {
            assert_eq!(read(&reader), line);
        }
        output.line("g");
        assert_eq!(read(&reader), "g\n");
        assert_eq!(output.finish(Some(PATIENCE)), 3);
    }

    #[test]
    fn who_ends_waits_no_longer_than_its_patience_and_knows_what_is_missing() {
        let (output, _closed, reader) = slow(4);
        output.line("a");
        until_taken(&output, 0);
        for line in ["b", "c", "x"] {
            output.line(line);
        }
        let late = output.clone();
        // One line is being written, two wait, and one is dropped.
        assert_eq!(output.finish(Some(Duration::from_millis(10))), 4);
        late.line("late");
        let rest = thread::spawn(move || late.finish(None));
        for line in ["a\n", "b\n", "c\n", "missing 1 1\n"] {
            assert_eq!(read(&reader), line);
        }
        assert_eq!(rest.join().unwrap(), 1);
        assert!(reader.recv_timeout(PATIENCE).is_err(), "it has ended");
    }

    #[test]
    fn a_closed_sink_is_told_once_and_queues_nothing() {
        let (output, closed, reader) = slow(100);
        drop(reader);
        output.line("a");
        let error = closed.blocking_recv().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        output.line("b");
        assert!(output.shared.queue().entries.is_empty());
        assert_eq!(output.finish(None), 0);
    }

    #[test]
    fn what_is_written_in_pieces_is_queued_in_lines() {
        let (mut output, _closed, reader) = slow(100);
        for piece in ["on", "e\ntw", "o\n\n"] {
            output.write_all(piece.as_bytes()).unwrap();
        }
        for line in ["one\n", "two\n", "\n"] {
            assert_eq!(read(&reader), line);
        }
        assert_eq!(output.finish(None), 0);
    }

    /// Lines read plus lines reported missing equal lines written, in any order of reads and
    /// writes.
    #[test]
    fn every_line_is_read_or_told_missing_in_its_place() {
        for seed in 0..50 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (output, _closed, reader) = slow(40);
            let mut received = Vec::new();
            for number in 0..100 {
                output.line(format!("{number}"));
                if rng.chance(selvedge_core::Ratio::new(1, 3)) {
                    received.push(read(&reader));
                }
            }
            let end = thread::spawn(move || output.finish(None));
            received.extend(reader.iter().map(|line| String::from_utf8(line).unwrap()));
            let mut next = 0;
            for line in received {
                let words: Vec<&str> = line.split_whitespace().collect();
                next += match *words {
                    ["missing", lines, _] => lines.parse::<u64>().unwrap(),
                    [number] => {
                        assert_eq!(number.parse(), Ok(next), "seed {seed}");
                        1
                    }
                    _ => panic!("seed {seed}: {line}"),
                };
            }
            assert_eq!(next, 100, "seed {seed}");
            assert!(end.join().unwrap() > 0, "seed {seed}: nothing was dropped");
        }
    }
}
