//! A plug that speaks as the Kasa family does, in a thread of the test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use selvedge_hub::device::kasa::{decode, encode};

/// The reaction to the next command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Obeys,
    Refuses,
    /// It switches, and does not answer.
    Switches,
    /// It takes the command and ignores it.
    Swallows,
    /// It announces a very long answer.
    Claims,
    /// It switches, does not answer, and keeps the connection.
    Hangs,
    /// It has no power.
    Dead,
}

pub(crate) struct Plug {
    pub(crate) address: SocketAddr,
    pub(crate) is_on: Arc<AtomicBool>,
    pub(crate) mood: Arc<Mutex<Mood>>,
    pub(crate) commands: Arc<AtomicU32>,
    /// The last command.
    pub(crate) notified: Arc<Mutex<String>>,
}

impl Plug {
    pub(crate) fn start() -> Self {
        Self::at("127.0.0.1:0".parse().unwrap())
    }

    pub(crate) fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let plug = Self {
            address: listener.local_addr().unwrap(),
            is_on: Arc::default(),
            mood: Arc::new(Mutex::new(Mood::Obeys)),
            commands: Arc::default(),
            notified: Arc::default(),
        };
        let (is_on, mood) = (Arc::clone(&plug.is_on), Arc::clone(&plug.mood));
        let (commands, notified) = (Arc::clone(&plug.commands), Arc::clone(&plug.notified));
        thread::spawn(move || {
            let mut open = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                if *mood.lock().unwrap() == Mood::Dead {
                    is_on.store(false, Ordering::SeqCst);
                    continue;
                }
                let mut len = [0; 4];
                if stream.read_exact(&mut len).is_err() {
                    continue;
                }
                let mut body = vec![0; u32::from_be_bytes(len) as usize];
                stream.read_exact(&mut body).unwrap();
                let text = String::from_utf8(decode(&body)).unwrap();
                let answer = if text.contains("get_sysinfo") {
                    let state = u8::from(is_on.load(Ordering::SeqCst));
                    format!(
                        r#"{{"system":{{"get_sysinfo":{{"deviceId":"8006","relay_state":{state},
                          "children":[{{"id":"00","state":0}},{{"id":"01","state":{state}}}]}}}}}}"#
                    )
                } else {
                    commands.fetch_add(1, Ordering::SeqCst);
                    notified.lock().unwrap().clone_from(&text);
                    let mood = *mood.lock().unwrap();
                    if matches!(
                        mood,
                        Mood::Obeys | Mood::Switches | Mood::Claims | Mood::Hangs
                    ) {
                        is_on.store(text.contains(r#""state":1"#), Ordering::SeqCst);
                    }
                    match mood {
                        Mood::Switches | Mood::Swallows | Mood::Dead => continue,
                        Mood::Hangs => {
                            open.push(stream);
                            continue;
                        }
                        Mood::Claims => {
                            stream.write_all(&[255; 4]).unwrap();
                            continue;
                        }
                        Mood::Obeys | Mood::Refuses => {
                            let code = if mood == Mood::Obeys { 0 } else { -3 };
                            format!(r#"{{"system":{{"set_relay_state":{{"err_code":{code}}}}}}}"#)
                        }
                    }
                };
                stream.write_all(&encode(&answer)).unwrap();
            }
        });
        plug
    }
}
