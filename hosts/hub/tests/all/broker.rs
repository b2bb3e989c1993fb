//! Brokers for tests, and clients that are devices.

use core::time::Duration;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{env, fs, thread};

use rumqttc::{Client, Event, Incoming, LastWill, MqttOptions, Outgoing, Publish, QoS};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A port of this process that is free now.
pub(crate) fn a_free_port(address: &str) -> SocketAddr {
    let listener = TcpListener::bind((address, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// A mosquitto, which ends with this value.
pub(crate) struct Mosquitto {
    child: Child,
    pub(crate) at: SocketAddr,
}

impl Mosquitto {
    /// Prints a message if none is installed.
    pub(crate) fn start(dir: &Path, address: &str) -> Option<Self> {
        Self::again(dir, a_free_port(address))
    }

    /// A mosquitto in place of an earlier one.
    pub(crate) fn again(dir: &Path, at: SocketAddr) -> Option<Self> {
        let mut it = Self::spawn(dir, at)?;
        it.wait();
        Some(it)
    }

    fn spawn(dir: &Path, at: SocketAddr) -> Option<Self> {
        let names = ["mosquitto", "/usr/sbin/mosquitto"];
        let is_there = |it: &&str| Command::new(it).arg("-h").output().is_ok();
        let Some(program) = names.into_iter().find(is_there) else {
            let how = "no mosquitto: install the package of that name";
            assert!(
                env::var_os("SELVEDGE_MOSQUITTO_REQUIRED").is_none(),
                "{how}"
            );
            println!("skipped: {how}");
            return None;
        };
        let config = dir.join("mosquitto.conf");
        let text = format!(
            "listener {} {}\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nlog_type error\nmax_queued_messages 10000\n",
            at.port(),
            at.ip()
        );
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        let child = command.arg("-c").arg(config).stdin(Stdio::null()).spawn();
        Some(Self {
            child: child.unwrap(),
            at,
        })
    }

    fn wait(&mut self) {
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(self.at).is_err() {
            assert!(Instant::now() < until, "mosquitto does not listen");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A client that receives all messages that it subscribed to.
pub(crate) struct Listener {
    pub(crate) client: Client,
    received: Receiver<Publish>,
}

fn options(name: &str, at: SocketAddr) -> MqttOptions {
    let mut options = MqttOptions::new(name, at.ip().to_string(), at.port());
    options.set_keep_alive(Duration::from_secs(5));
    options.set_max_packet_size(1 << 21, 1 << 21);
    options
}

impl Listener {
    pub(crate) fn new(name: &str, at: SocketAddr, filters: &[&str]) -> Self {
        Self::with(options(name, at), filters)
    }

    pub(crate) fn with(options: MqttOptions, filters: &[&str]) -> Self {
        let (client, mut connection) = Client::new(options, 100);
        let (notify, received) = mpsc::channel();
        let (up, is_up) = mpsc::channel();
        let again = client.clone();
        let filters: Vec<String> = filters.iter().map(|it| (*it).into()).collect();
        let all = filters.len();
        thread::spawn(move || {
            let mut subscribed = 0;
            for event in connection.iter() {
                match event {
                    Ok(Event::Incoming(Incoming::ConnAck(_))) => {
                        for filter in &filters {
                            again.try_subscribe(filter, QoS::AtLeastOnce).unwrap();
                        }
                        if all == 0 {
                            up.send(()).ok();
                        }
                    }
                    Ok(Event::Incoming(Incoming::SubAck(_))) => {
                        subscribed += 1;
                        if subscribed == all {
                            up.send(()).ok();
                        }
                    }
                    Ok(Event::Outgoing(Outgoing::Disconnect)) => return,
                    Ok(Event::Incoming(Incoming::Publish(it))) => {
                        if notify.send(it).is_err() {
                            return;
                        }
                    }
                    Ok(_) => {}
                    // The broker may start later than this.
                    Err(_) => thread::sleep(Duration::from_millis(50)),
                }
            }
        });
        is_up.recv_timeout(PATIENCE).expect("the broker is there");
        Self { client, received }
    }

    /// Waits until a message is published.
    pub(crate) fn wait_for(&self, what: &str, is_it: impl Fn(&Publish) -> bool) -> Publish {
        let until = Instant::now() + PATIENCE;
        let mut others = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.received.recv_timeout(left) {
                Ok(it) if is_it(&it) => return it,
                Ok(it) => others.push(format!(
                    "{} {}",
                    it.topic,
                    String::from_utf8_lossy(&it.payload)
                )),
                Err(_) => panic!("{what}: heard {others:#?}"),
            }
        }
    }

    pub(crate) fn text(&self, topic: &str) -> String {
        let it = self.wait_for(topic, |it| it.topic == topic && !it.payload.is_empty());
        String::from_utf8(it.payload.to_vec()).unwrap()
    }

    /// All messages within a time.
    pub(crate) fn all(&self, time: Duration) -> Vec<Publish> {
        let until = Instant::now() + time;
        let left = || until.saturating_duration_since(Instant::now());
        core::iter::from_fn(|| self.received.recv_timeout(left()).ok()).collect()
    }

    pub(crate) fn say(&self, topic: &str, payload: &str) {
        let payload = payload.as_bytes().to_vec();
        self.client
            .publish(topic, QoS::AtLeastOnce, false, payload)
            .unwrap();
    }

    pub(crate) fn retain(&self, topic: &str, payload: &str) {
        let payload = payload.as_bytes().to_vec();
        self.client
            .publish(topic, QoS::AtLeastOnce, true, payload)
            .unwrap();
    }
}

/// A relay with Tasmota's words, which reports its state and has a last will.
pub(crate) struct Relay {
    client: Client,
    pub(crate) is_on: Arc<AtomicBool>,
    /// True if it obeys and answers.
    pub(crate) obeys: Arc<AtomicBool>,
    /// Each command, and true if it was retained.
    pub(crate) received: Arc<Mutex<Vec<(String, bool)>>>,
    lives: Arc<AtomicBool>,
}

impl Relay {
    pub(crate) fn start(name: &str, at: SocketAddr) -> Self {
        let mut options = options(name, at);
        let lwt = format!("tele/{name}/LWT");
        options.set_last_will(LastWill::new(&lwt, "Offline", QoS::AtLeastOnce, true));
        let (client, mut connection) = Client::new(options, 100);
        let relay = Self {
            client: client.clone(),
            is_on: Arc::default(),
            obeys: Arc::new(AtomicBool::new(true)),
            received: Arc::default(),
            lives: Arc::new(AtomicBool::new(true)),
        };
        let (is_on, obeys) = (Arc::clone(&relay.is_on), Arc::clone(&relay.obeys));
        let (received, lives) = (Arc::clone(&relay.received), Arc::clone(&relay.lives));
        let name = String::from(name);
        thread::spawn(move || {
            for event in connection.iter() {
                if !lives.load(Ordering::SeqCst) {
                    return; // Its power is cut: the broker publishes its last will.
                }
                match event {
                    Ok(Event::Incoming(Incoming::ConnAck(_))) => {
                        let commands = format!("cmnd/{name}/POWER");
                        client.try_subscribe(commands, QoS::AtLeastOnce).unwrap();
                        let retained = client.try_publish(&lwt, QoS::AtLeastOnce, true, "Online");
                        retained.unwrap();
                    }
                    Ok(Event::Incoming(Incoming::Publish(it))) => {
                        let text = String::from_utf8(it.payload.to_vec()).unwrap();
                        if !text.is_empty() {
                            received.lock().unwrap().push((text.clone(), it.retain));
                        }
                        if !obeys.load(Ordering::SeqCst) {
                            continue;
                        }
                        match text.as_str() {
                            "ON" => is_on.store(true, Ordering::SeqCst),
                            "OFF" => is_on.store(false, Ordering::SeqCst),
                            _ => {}
                        }
                        let state = match is_on.load(Ordering::SeqCst) {
                            true => "ON",
                            false => "OFF",
                        };
                        let reports = format!("stat/{name}/POWER");
                        let reported = client.try_publish(reports, QoS::AtMostOnce, false, state);
                        reported.unwrap();
                    }
                    Ok(_) => {}
                    Err(_) => thread::sleep(Duration::from_millis(50)),
                }
            }
        });
        relay
    }

    /// Its power is cut.
    pub(crate) fn pull_out(&self) {
        self.lives.store(false, Ordering::SeqCst);
        // It wakes up, and ends.
        self.client
            .try_publish("nowhere", QoS::AtMostOnce, false, "")
            .ok();
    }
}
