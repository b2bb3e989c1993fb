//! A Chromium without a window, driven by its DevTools protocol over pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use serde_json::{Value, json};

pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    profile: PathBuf,
    /// The session of the one tab.
    session: Option<String>,
    commands: u64,
    errors: Vec<String>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The command ends its own processes.
        write!(
            self.input,
            "{}\0",
            json!({"id": 0, "method": "Browser.close"})
        )
        .ok();
        self.input.flush().ok();
        self.child.wait().ok();
        fs::remove_dir_all(&self.profile).ok();
    }
}

impl Browser {
    pub(crate) fn start(program: &str) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        // Two browsers with one profile would be one.
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let profile = format!("selvedge-browser-{}-{nth}", process::id());
        let profile = env::temp_dir().join(profile);
        // The protocol uses file descriptors 3 and 4.
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "exec \"$0\" \"$@\" 3<&0 4>&1 >/dev/null 2>&1",
            program,
        ]);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ]);
        command.args([
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
        ]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self {
            child,
            input,
            output: BufReader::new(output),
            profile,
            session: None,
            commands: 0,
            errors: Vec::new(),
        }
    }

    /// Opens a tab with this address.
    pub(crate) fn open(&mut self, address: &str) {
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", attach);
        self.session = Some(attached["sessionId"].as_str().unwrap().into());
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            self.call(domain, json!({}));
        }
        self.call("Page.navigate", json!({"url": address}));
    }

    /// The value of an expression.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        let done = self.call("Runtime.evaluate", asked);
        assert!(
            done.get("exceptionDetails").is_none(),
            "{expression}: {done}"
        );
        done["result"]["value"].clone()
    }

    pub(crate) fn number(&mut self, expression: &str) -> u64 {
        self.eval(expression).as_u64().unwrap()
    }

    /// The text of the first element that a selector finds; empty if it finds none.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let text = self.eval(&format!(
            "document.querySelector('{selector}')?.textContent ?? ''"
        ));
        text.as_str().unwrap().into()
    }

    /// Errors of the page, and requests that the browser refused.
    pub(crate) fn errors(&self) -> String {
        self.errors.join("\n")
    }

    /// A picture of the whole page, in PNG.
    pub(crate) fn picture(&mut self, width: u32, scheme: &str) -> Vec<u8> {
        let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": feature}));
        let size =
            json!({"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let wide = self.number("document.documentElement.scrollWidth");
        assert!(
            wide <= u64::from(width),
            "{wide} pixels at a width of {width}"
        );
        let picture = json!({"format": "png", "captureBeyondViewport": true});
        let taken = self.call("Page.captureScreenshot", picture);
        from_base64(taken["data"].as_str().unwrap())
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.commands += 1;
        let id = self.commands;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone().into();
        }
        write!(self.input, "{message}\0").unwrap();
        self.input.flush().unwrap();
        loop {
            let mut bytes = Vec::new();
            self.output.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser has ended");
            let notified: Value = serde_json::from_slice(&bytes).unwrap();
            if notified["id"] == id {
                assert!(notified.get("error").is_none(), "{method}: {notified}");
                return notified["result"].clone();
            }
            let is_error = notified["params"]["entry"]["level"] == "error";
            if notified["method"] == "Runtime.exceptionThrown" || is_error {
                self.errors.push(notified["params"].to_string());
            }
        }
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text
        .bytes()
        .filter_map(|it| digits.iter().position(|digit| *digit == it));
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_usize, 0);
    for digit in digits {
        held = held << 6 | digit;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    bytes
}
