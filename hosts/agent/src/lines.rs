//! Lines that are written on a thread of their own: a reader or a disk that stalls delays nothing.

use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// The most lines that wait.
const LINES: usize = 1_024;
/// The longest wait for the thread, which may be at a write that stalls.
const WAIT: Duration = Duration::from_secs(1);
/// The interval at which a full queue is looked at.
const LOOKS: Duration = Duration::from_millis(10);
/// The mode of a new file: its user writes, and its group reads.
const MODE: u32 = 0o640;

/// The place to which lines are written.
#[derive(Debug)]
pub(crate) enum Sink {
    Stdout,
    Stderr,
    File(Appended),
}

/// A file to which lines are appended.
#[derive(Debug)]
pub(crate) struct Appended {
    path: PathBuf,
    file: File,
    /// The last write failed, and may have left a part of its line.
    is_torn: bool,
}

/// Writes lines in their order. Lines that find no room are lost, and counted.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    orders: SyncSender<Order>,
    counts: Arc<Counts>,
}

#[derive(Debug)]
enum Order {
    Line(String),
    /// Open the file anew.
    Reopen(oneshot::Sender<io::Result<()>>),
    /// Answer when all lines before are written.
    Flush(oneshot::Sender<()>),
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
}

impl Appended {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let (path, file) = (path.to_owned(), open(path)?);
        let is_torn = false;
        Ok(Self {
            path,
            file,
            is_torn,
        })
    }

    /// Opens the file of this path anew. When that fails, the former one stays in use.
    fn reopen(&mut self) -> io::Result<()> {
        self.file = open(&self.path)?;
        self.is_torn = false;
        Ok(())
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let start = if self.is_torn { "\n" } else { "" };
        let written = self.file.write_all(format!("{start}{line}\n").as_bytes());
        self.is_torn = written.is_err();
        written
    }
}

impl Sink {
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::Stdout => writeln!(io::stdout(), "{line}"),
            Self::Stderr => writeln!(io::stderr(), "{line}"),
            Self::File(file) => file.write(line),
        }
    }

    fn reopen(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout | Self::Stderr => Ok(()),
            Self::File(file) => file.reopen(),
        }
    }
}

impl Lines {
    /// Starts the thread. `report` gets the first error of a row of failed writes, and `None` at the end of the row.
    ///
    /// # Errors
    /// When the thread does not start.
    pub(crate) fn start(
        name: &str,
        mut sink: Sink,
        report: impl Fn(Option<io::Error>) + Send + 'static,
    ) -> io::Result<Self> {
        let (orders, waiting) = sync_channel(LINES);
        let counts = Arc::<Counts>::default();
        let lines = Self {
            orders,
            counts: Arc::clone(&counts),
        };
        thread::Builder::new().name(name.into()).spawn(move || {
            let mut fails = false;
            for order in waiting {
                let line = match order {
                    Order::Line(line) => line,
                    Order::Reopen(reply) => {
                        // The caller may have gone.
                        reply.send(sink.reopen()).ok();
                        continue;
                    }
                    Order::Flush(reply) => {
                        reply.send(()).ok();
                        continue;
                    }
                };
                match sink.write(&line) {
                    Ok(()) => {
                        counts.written.fetch_add(1, Ordering::Relaxed);
                        if core::mem::take(&mut fails) {
                            report(None);
                        }
                    }
                    Err(error) => {
                        counts.lost.fetch_add(1, Ordering::Relaxed);
                        if !core::mem::replace(&mut fails, true) {
                            report(Some(error));
                        }
                    }
                }
            }
        })?;
        Ok(lines)
    }

    /// Has a line written. Returns false, and counts it as lost, if there is no room.
    pub(crate) fn write(&self, line: String) -> bool {
        let has_room = self.orders.try_send(Order::Line(line)).is_ok();
        if !has_room {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    /// Opens the file anew. The former one stays in use after an error; after a stall, until the thread goes on.
    pub(crate) async fn reopen(&self) -> io::Result<()> {
        match timeout(WAIT, self.ask(Order::Reopen)).await {
            Ok(Some(reopened)) => reopened,
            Ok(None) | Err(_) => Err(io::Error::other(
                "it is not written now: see whether its disk stalls",
            )),
        }
    }

    /// Waits until all lines are written, for a second at most: the process is about to end.
    pub(crate) async fn flush(&self) {
        timeout(WAIT, self.ask(Order::Flush)).await.ok();
    }

    /// Gives the thread an order once there is room, and returns the answer; `None` when the thread has ended.
    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let mut order = order(reply);
        while let Err(TrySendError::Full(it)) = self.orders.try_send(order) {
            order = it;
            sleep(LOOKS).await;
        }
        answer.await.ok()
    }

    /// The numbers of written and of lost lines.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let Counts { written, lost } = &*self.counts;
        (
            written.load(Ordering::Relaxed),
            lost.load(Ordering::Relaxed),
        )
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(MODE).open(path)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::{self, Read as _};
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;

    use core::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::{Appended, LINES, Lines, Sink};

    /// Lines in a pipe.
    fn piped(writer: io::PipeWriter) -> Lines {
        let sink = Sink::File(Appended {
            path: PathBuf::new(),
            file: OwnedFd::from(writer).into(),
            is_torn: false,
        });
        Lines::start("test", sink, |_| ()).unwrap()
    }

    /// More than the pipe has room for.
    #[tokio::test]
    async fn a_flush_waits_for_all_lines_and_those_without_room_are_counted() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = piped(writer);
        let line = "x".repeat(1_023);
        let count = (0..LINES / 2).filter(|_| lines.write(line.clone())).count();
        assert_eq!(count, LINES / 2);
        let flushed = async {
            lines.flush().await;
            lines.counts()
        };
        let mut text = vec![0; count << 10];
        let reads = tokio::task::spawn_blocking(move || {
            reader.read_exact(&mut text).unwrap();
            reader
        });
        let (counts, reader) = tokio::join!(flushed, reads);
        assert_eq!(counts, (count as u64, 0));
        // No one reads now: the pipe and the queue are full.
        let had_room = (0..2 * LINES).filter(|_| lines.write(line.clone())).count();
        assert!(had_room < 2 * LINES);
        assert_eq!(lines.counts().1, (2 * LINES - had_room) as u64);
        // A flush waits for room.
        let mut reader = reader.unwrap();
        let mut text = vec![0; had_room << 10];
        let reads = async {
            sleep(Duration::from_millis(50)).await;
            let reads = tokio::task::spawn_blocking(move || reader.read_exact(&mut text));
            reads.await.unwrap().unwrap();
        };
        let flushed = async {
            lines.flush().await;
            lines.counts().0
        };
        let (written, ()) = tokio::join!(flushed, reads);
        assert_eq!(written, (count + had_room) as u64);
    }

    #[tokio::test]
    async fn a_file_that_stalls_is_not_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        let lines = piped(writer);
        // More than the pipe has room for, and less than the queue.
        let count = (0..LINES / 2).filter(|_| lines.write("x".repeat(1_023)));
        assert_eq!(count.count(), LINES / 2);
        let reopened = timeout(Duration::from_secs(30), lines.reopen()).await;
        assert!(reopened.unwrap().is_err());
        drop(reader);
    }

    #[test]
    fn a_line_after_a_torn_one_is_whole() {
        let name = format!("selvedge-lines-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut file = Appended::open(&path).unwrap();
        file.write("one").unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let whole = core::mem::replace(&mut file.file, full);
        file.write("two").unwrap_err();
        file.file = whole;
        file.write("three").unwrap();
        file.write("four").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\n\nthree\nfour\n");
        fs::remove_file(path).unwrap();
    }
}
