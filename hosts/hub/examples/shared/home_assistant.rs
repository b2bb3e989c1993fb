//! Home Assistant in a process, with its API.

use core::time::Duration;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::Instant;
use std::{fs, thread};

use serde_json::{Value, json};

use crate::http::request;

/// Waits for a result that exists after a while.
pub(crate) fn until<T>(what: &str, seconds: u64, mut found: impl FnMut() -> Option<T>) -> T {
    let last = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(it) = found() {
            return it;
        }
        assert!(Instant::now() < last, "{what} after {seconds} s");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A process that ends with it.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) struct HomeAssistant {
    address: String,
    token: Mutex<String>,
    _process: Process,
}

impl HomeAssistant {
    /// Starts `program` with a folder that it may fill, and waits until it answers.
    ///
    /// `entries` are the settings of integrations that are not in `configuration`.
    pub(crate) fn start(
        mut program: Command,
        dir: &Path,
        port: u16,
        configuration: &str,
        entries: &Value,
    ) -> Self {
        let storage = dir.join(".storage");
        fs::create_dir_all(&storage).unwrap();
        let whole = format!("{}{configuration}", base(port));
        fs::write(dir.join("configuration.yaml"), whole).unwrap();
        for (key, version, data) in [
            ("auth", 1, users()),
            ("core.config_entries", 1, json!({"entries": entries})),
            (
                "onboarding",
                4,
                json!({"done": ["user", "core_config", "analytics", "integration"]}),
            ),
        ] {
            let stored = json!({"version": version, "minor_version": 1, "key": key, "data": data});
            fs::write(storage.join(key), stored.to_string()).unwrap();
        }
        let log = fs::File::create(dir.join("out.log")).unwrap();
        let process = program
            .arg("-c")
            .arg(dir)
            .arg("--skip-pip")
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let system = Self {
            address: format!("127.0.0.1:{port}"),
            token: Mutex::default(),
            _process: Process(process),
        };
        until("Home Assistant does not start", 180, || {
            system.login().then_some(())
        });
        system
    }

    /// A client from this machine is let in; its token is valid for half an hour.
    fn login(&self) -> bool {
        let client = format!("http://{}/", self.address);
        let json_type = "content-type: application/json\r\n";
        let form_type = "content-type: application/x-www-form-urlencoded\r\n";
        let asked = json!({"client_id": client, "redirect_uri": client, "handler": ["trusted_networks", null]});
        let post = |path: &str, of: &str, body: &str| -> Option<Value> {
            let (status, notified) = request(&self.address, "POST", path, of, body);
            (status == 200).then(|| serde_json::from_str(&notified).unwrap())
        };
        let Some(flow) = post("/auth/login_flow", json_type, &asked.to_string()) else {
            return false;
        };
        let code = flow["result"].as_str().unwrap();
        let asked = format!("grant_type=authorization_code&code={code}&client_id={client}");
        let notified = post("/auth/token", form_type, &asked).unwrap();
        let token = notified["access_token"].as_str().unwrap();
        *self.token.lock().unwrap() = token.into();
        true
    }

    /// The status and the body of an answer.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let header = || format!("authorization: Bearer {}\r\n", self.token.lock().unwrap());
        let notified = request(&self.address, method, path, &header(), body);
        if notified.0 != 401 {
            return notified;
        }
        self.login();
        request(&self.address, method, path, &header(), body)
    }
}

fn base(port: u16) -> String {
    format!(
        "homeassistant:
  name: Home
  auth_providers:
    - type: trusted_networks
      trusted_networks: [127.0.0.0/8]
      allow_bypass_login: true
http:
  server_host: 127.0.0.1
  server_port: {port}
api:
"
    )
}

fn users() -> Value {
    json!({
        "users": [{"id": "one", "group_ids": ["system-admin"], "is_owner": true, "is_active": true,
            "name": "one", "system_generated": false, "local_only": false}],
        "groups": [{"id": "system-admin", "name": "Administrators"}, {"id": "system-users", "name": "Users"},
            {"id": "system-read-only", "name": "Read Only"}],
        "credentials": [], "refresh_tokens": [],
    })
}
