//! Gateways and followers as child processes.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

use selvedge_core::{NodeId, Span};
use selvedge_faas::client::{self, Client, Options};
use selvedge_faas::find::Gateways;
use selvedge_faas::notice::Status;
use selvedge_faas::watch::Watch;
use selvedge_faas::{Access, Address};
use selvedge_pcm::client::Config;

use super::Failure;
use super::awake::Awake;
use super::interrupts::Interrupts;

/// The first id of followers.
pub(crate) const FOLLOWERS: u64 = 101;
/// The port of the first world of a process; the next worlds have the next ports.
const PORT: u16 = 18_830;
/// A process. It is killed when this is dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // A process that has ended is waited for all the same.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The processes of a world.
#[derive(Debug, Default)]
pub(crate) struct Setting {
    pub(crate) gateways: u64,
    pub(crate) followers: u64,
    /// The number of milliseconds for which a follower is awake in each period.
    pub(crate) active: u64,
    /// The number of milliseconds for which it sleeps.
    pub(crate) asleep: u64,
    /// The delay of each follower's start after the gateways'; followers without one start at once.
    pub(crate) begins: Vec<Duration>,
    /// The port of the first gateway at 127.0.0.1; otherwise each world has its own addresses.
    pub(crate) port: Option<u16>,
    /// A mosquitto for each gateway, instead of the broker inside.
    pub(crate) mosquitto: Option<PathBuf>,
    /// Further flags of each gateway and of each follower.
    pub(crate) gateway_flags: Vec<String>,
    pub(crate) follower_flags: Vec<String>,
    /// A reader of the followers' logs that measures when they are awake; they log it if this is
    /// set.
    pub(crate) awake: Option<Awake>,
    /// Requests to end, which stop the waiting.
    pub(crate) interrupts: Interrupts,
    /// True if the logs of the processes are shown.
    pub(crate) is_verbose: bool,
}

/// The processes, and the directory of their data, which is removed on drop.
pub(crate) struct World {
    setting: Setting,
    /// The number of this world among all worlds of this process.
    nth: u16,
    nodes: BTreeMap<u64, Node>,
    /// The brokers of all gateways, which are not killed.
    brokers: Vec<Node>,
    data: PathBuf,
    /// The gateways that were started before.
    begun: Vec<u64>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.nodes.clear();
        self.brokers.clear();
        fs::remove_dir_all(&self.data).ok(); // The system cleans temporary directories, too.
    }
}

impl World {
    pub(crate) fn start(setting: Setting) -> Result<Self, Failure> {
        static WORLDS: AtomicU16 = AtomicU16::new(0);
        let nth = WORLDS.fetch_add(1, Ordering::Relaxed);
        let name = format!("selvedge-faas-world-{}-{nth}", process::id());
        let data = env::temp_dir().join(name);
        fs::create_dir_all(&data).map_err(Failure::Directory)?;
        let mut world = Self {
            setting,
            nth,
            nodes: BTreeMap::new(),
            brokers: Vec::new(),
            data,
            begun: Vec::new(),
        };
        for id in 1..=world.setting.gateways {
            if let Some(program) = &world.setting.mosquitto {
                let broker = world.start_broker(program, id).map_err(Failure::Process)?;
                world.brokers.push(broker);
            }
        }
        for id in 1..=world.setting.gateways {
            world.start_node(id)?;
        }
        world.start_followers()?;
        Ok(world)
    }

    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn start_followers(&mut self) -> Result<(), Failure> {
        let begins = &self.setting.begins;
        let begin = |nth: u64| begins.get(nth as usize).copied().unwrap_or_default();
        let all = (0..self.setting.followers).map(|nth| (begin(nth), FOLLOWERS + nth));
        let mut all: Vec<(Duration, u64)> = all.collect();
        all.sort_unstable();
        let begun = Instant::now();
        for (begin, id) in all {
            thread::sleep(begin.saturating_sub(begun.elapsed()));
            self.check_interrupts()?;
            self.start_node(id)?;
        }
        Ok(())
    }

    fn check_interrupts(&self) -> Result<(), Failure> {
        match self.setting.interrupts.count_so_far() {
            0 => Ok(()),
            _ => Err(Failure::Interrupted),
        }
    }

    /// A client of these gateways.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::start(Options {
            id: client::any_id()?,
            gateways: self.gateways()?,
            access: Access::default(),
            config: Config::new().with_tasks(u16::MAX),
        })?)
    }

    fn gateways(&self) -> Result<Gateways, Failure> {
        let all = (1..=self.setting.gateways).map(|it| (NodeId(it), self.address(it)));
        Ok(Gateways::new(all)?)
    }

    /// The process id of each running node.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.nodes.iter().map(|(id, node)| (*id, node.0.id()))
    }

    /// The address at which a gateway listens.
    pub(crate) fn address(&self, gateway: u64) -> Address {
        if let Some(first) = self.setting.port {
            let more = u16::try_from(gateway.saturating_sub(1)).unwrap_or(u16::MAX);
            return Address {
                host: "127.0.0.1".into(),
                port: first.saturating_add(more),
            };
        }
        // The processes of another world may have the numbers after this one.
        let process = process::id();
        let (high, low) = (64 + process / 250 % 128, process % 250);
        Address {
            host: format!("127.{high}.{low}.{gateway}"),
            port: PORT.saturating_add(self.nth),
        }
    }

    fn start_broker(&self, program: &PathBuf, id: u64) -> io::Result<Node> {
        let Address { host, port } = self.address(id);
        let path = self.data.join(format!("mosquitto-{id}.conf"));
        let settings = format!(
            "listener {port} {host}\nallow_anonymous true\npersistence false\n\
             set_tcp_nodelay true\nlog_type error\n"
        );
        fs::write(&path, settings)?;
        let mut command = Command::new(program);
        command.arg("-c").arg(path).stdin(Stdio::null());
        command.spawn().map(Node)
    }

    /// Starts a gateway or a follower, for the first time or again.
    pub(crate) fn start_node(&mut self, id: u64) -> Result<(), Failure> {
        let program = env::current_exe().map_err(Failure::Process)?;
        let mut command = Command::new(program);
        match id <= self.setting.gateways {
            true => self.describe_gateway(&mut command, id),
            false => self.describe_follower(&mut command, id),
        }
        command.arg("--is-child").stdin(Stdio::null());
        // They connect to each other only.
        command.env_remove("SELVEDGE_FAAS_USER");
        command.env_remove("SELVEDGE_FAAS_PASSWORD");
        let awake = self.setting.awake.as_ref();
        let awake = awake.filter(|_| id > self.setting.gateways);
        if self.setting.is_verbose || awake.is_some() {
            command.arg("--verbose");
        }
        if awake.is_some() {
            command.stderr(Stdio::piped());
        }
        let mut child = command.spawn().map_err(Failure::Process)?;
        if let Some((awake, reported)) = awake.zip(child.stderr.take()) {
            awake.listen(id, reported);
        }
        self.nodes.insert(id, Node(child));
        Ok(())
    }

    fn describe_gateway(&mut self, command: &mut Command, id: u64) {
        command.args(["gateway", "--id", &id.to_string()]);
        let broker = match self.setting.mosquitto.is_some() {
            true => "--broker",
            false => "--listen",
        };
        command.arg(broker).arg(self.address(id).to_string());
        for peer in (1..=self.setting.gateways).filter(|it| *it != id) {
            let address = self.address(peer);
            command.arg("--peer").arg(format!("{peer}={address}"));
        }
        command.arg("--data").arg(self.data.join(id.to_string()));
        if !self.begun.contains(&id) {
            self.begun.push(id);
            command.arg("--first");
        }
        command.args(&self.setting.gateway_flags);
    }

    fn describe_follower(&self, command: &mut Command, id: u64) {
        command.args(["follower", "--id", &id.to_string()]);
        // Each follower begins its list at another gateway.
        for at in 0..self.setting.gateways {
            let gateway = 1 + (id + at) % self.setting.gateways;
            let address = self.address(gateway);
            command.arg("--gateway").arg(format!("{gateway}={address}"));
        }
        command
            .arg("--active")
            .arg(format!("{}ms", self.setting.active));
        command
            .arg("--asleep")
            .arg(format!("{}ms", self.setting.asleep));
        command.args(&self.setting.follower_flags);
    }

    /// Kills a node, as `kill -9` and a power cut do.
    pub(crate) fn kill(&mut self, id: u64) {
        self.nodes.remove(&id);
    }

    /// Waits until brokers listen, and a gateway reports that it manages. Returns the time that it
    /// took.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn wait_until(
        &self,
        patience: Duration,
        is_ready: impl Fn(&Status) -> bool,
    ) -> Result<(Status, Duration), Failure> {
        let begun = Instant::now();
        for id in 1..=self.setting.gateways {
            let address = self.address(id).to_string();
            while TcpStream::connect(&address).is_err() && begun.elapsed() < patience {
                self.check_interrupts()?;
                thread::sleep(Duration::from_millis(20));
            }
        }
        let gateways = self.gateways()?;
        let me = client::any_id()?;
        let watch = Watch::start(&gateways, &Access::default(), me).map_err(Failure::Process)?;
        while begun.elapsed() < patience {
            self.check_interrupts()?;
            if let Some((_, status)) = watch.wait(Span::millis(100))
                && status.manages
                && is_ready(&status)
            {
                return Ok((status, begun.elapsed()));
            }
        }
        let why = io::Error::other("no units are formed");
        Err(Failure::Process(why))
    }
}
