//! The processes of the demo.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

use selvedge_core::{NodeId, Span};
use selvedge_faas::find::Gateways;
use selvedge_faas::watch::Watch;
use selvedge_faas::{Access, Address};

use super::Demo;
use super::plan::FOLLOWERS;
use crate::command::Failure;

const PORT: u16 = 18_830;
/// How long the processes may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process. It is killed when this is dropped.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // One that has ended is waited for all the same.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The processes, and the directory of their data, which goes with this.
pub(super) struct World {
    nodes: BTreeMap<u64, Node>,
    /// Of all gateways, and not killed.
    brokers: Vec<Node>,
    data: PathBuf,
    gateways: u64,
    active: u64,
    asleep: u64,
    has_brokers: bool,
    is_verbose: bool,
    /// The gateways that were started before.
    begun: Vec<u64>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.nodes.clear();
        self.brokers.clear();
        fs::remove_dir_all(&self.data).ok(); // The system empties its directory, too.
    }
}

impl World {
    pub(super) fn start(demo: &Demo) -> Result<Self, Failure> {
        let data = env::temp_dir().join(format!("selvedge-faas-demo-{}", process::id()));
        fs::create_dir_all(&data).map_err(Failure::Directory)?;
        let mut world = Self {
            nodes: BTreeMap::new(),
            brokers: Vec::new(),
            data,
            gateways: demo.gateways,
            active: demo.active,
            asleep: demo.asleep,
            has_brokers: demo.mosquitto.is_some(),
            is_verbose: demo.verbose,
            begun: Vec::new(),
        };
        for id in 1..=demo.gateways {
            if let Some(program) = &demo.mosquitto {
                let broker = world.start_broker(program, id).map_err(Failure::Process)?;
                world.brokers.push(broker);
            }
        }
        let all = (1..=demo.gateways).chain((0..demo.followers).map(|it| FOLLOWERS + it));
        for id in all {
            world.start_node(id)?;
        }
        Ok(world)
    }

    /// Each demo has loopback addresses of its own.
    pub(super) fn address(&self, gateway: u64) -> Address {
        let number = process::id();
        let (high, low) = (64 + number / 250 % 128, number % 250);
        Address {
            host: format!("127.{high}.{low}.{gateway}"),
            port: PORT,
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
    pub(super) fn start_node(&mut self, id: u64) -> Result<(), Failure> {
        let program = env::current_exe().map_err(Failure::Process)?;
        let mut command = Command::new(program);
        match id <= self.gateways {
            true => self.describe_gateway(&mut command, id),
            false => self.describe_follower(&mut command, id),
        }
        command.arg("--is-child").stdin(Stdio::null());
        if self.is_verbose {
            command.arg("--verbose");
        }
        let child = command.spawn().map_err(Failure::Process)?;
        self.nodes.insert(id, Node(child));
        Ok(())
    }

    fn describe_gateway(&mut self, command: &mut Command, id: u64) {
        command.args(["gateway", "--id", &id.to_string()]);
        let broker = match self.has_brokers {
            true => "--broker",
            false => "--listen",
        };
        command.arg(broker).arg(self.address(id).to_string());
        for peer in (1..=self.gateways).filter(|it| *it != id) {
            let address = self.address(peer);
            command.arg("--peer").arg(format!("{peer}={address}"));
        }
        command.arg("--data").arg(self.data.join(id.to_string()));
        if !self.begun.contains(&id) {
            self.begun.push(id);
            command.arg("--first");
        }
    }

    fn describe_follower(&self, command: &mut Command, id: u64) {
        command.args(["follower", "--id", &id.to_string()]);
        // Each begins its list at another gateway.
        for at in 0..self.gateways {
            let gateway = 1 + (id + at) % self.gateways;
            let address = self.address(gateway);
            command.arg("--gateway").arg(format!("{gateway}={address}"));
        }
        command.arg("--active").arg(format!("{}ms", self.active));
        command.arg("--asleep").arg(format!("{}ms", self.asleep));
    }

    /// As `kill -9` and a power cut do.
    pub(super) fn kill(&mut self, id: u64) {
        self.nodes.remove(&id);
    }

    /// Waits until brokers listen, a gateway manages, and units are formed.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(super) fn wait_until_led(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        for id in 1..=self.gateways {
            let address = self.address(id).to_string();
            while TcpStream::connect(&address).is_err() && begun.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(20));
            }
        }
        let all = (1..=self.gateways).map(|it| (NodeId(it), self.address(it)));
        let gateways = Gateways::new(all)?;
        let me = selvedge_faas::client::any_id()?;
        let watch = Watch::start(&gateways, &Access::default(), me).map_err(Failure::Process)?;
        while begun.elapsed() < PATIENCE {
            if let Some((_, status)) = watch.wait(Span::millis(100))
                && status.manages
                && status.units > 0
            {
                let (followers, units) = (status.followers, status.units);
                let took = begun.elapsed().as_millis();
                println!("{followers} followers in {units} units after {took} ms");
                return Ok(());
            }
        }
        let why = io::Error::other("no units are formed");
        Err(Failure::Process(why))
    }
}
