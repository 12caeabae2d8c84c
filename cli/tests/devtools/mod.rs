//! A real Chromium without a window, driven as its developer tools drive it: messages of JSON over two named pipes.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest wait for anything.
const TIME_OUT: Duration = Duration::from_secs(90);

/// One page of a browser of its own; it ends with this value.
pub struct Page {
    child: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// What the page complained about: errors, warnings, requests to others.
    pub complaints: Vec<String>,
}

impl Page {
    /// Starts a browser with its profile and its pipes below `dir`, and opens an empty page.
    pub fn open(browser: &Path, dir: &Path) -> Page {
        let [to, from] = ["to", "from"].map(|name| dir.join(name));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        // The browser reads its messages from descriptor 3 and writes to 4; a shell opens them.
        let child = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<"$TO" 4>"$FROM""#])
            .arg(browser)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"])
            .args(["--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--remote-debugging-pipe", "--no-startup-window"])
            .arg(format!("--user-data-dir={}", dir.join("profile").display()))
            .env("TO", &to)
            .env("FROM", &from)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(&to).unwrap();
        let mut from = BufReader::new(File::open(&from).unwrap());
        let (give, taken) = channel();
        thread::spawn(move || {
            let mut text = Vec::new();
            while from.read_until(0, &mut text).is_ok_and(|n| n > 0) {
                text.pop();
                let Ok(message) = serde_json::from_slice(&text) else { break };
                let Ok(()) = give.send(message) else { break };
                text.clear();
            }
        });
        let mut page = Page { child, to, from: taken, next: 0, session: None, complaints: Vec::new() };
        let target = page.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let session = page.ask("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        page.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Network", "Page"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        page
    }

    /// Asks the browser for something and waits for the answer; what happens meanwhile is noted.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(&[message.to_string().as_bytes(), b"\0"].concat()).unwrap();
        loop {
            let mut said = self.from.recv_timeout(TIME_OUT).unwrap_or_else(|e| panic!("{method}: {e}"));
            if said["id"] == self.next {
                assert!(said["error"].is_null(), "{method}: {said}");
                return said["result"].take();
            }
            self.note(&said["method"], &said["params"]);
        }
    }

    fn note(&mut self, method: &Value, about: &Value) {
        let complaint = match method.as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => about["type"] != "log",
            Some("Log.entryAdded") => about["entry"]["level"] != "verbose" && about["entry"]["level"] != "info",
            Some("Network.requestWillBeSent") => {
                let url = about["request"]["url"].as_str().unwrap_or_default();
                !(url.starts_with("http://127.0.0.1") || url.starts_with("data:") || url.starts_with("about:"))
            }
            _ => false,
        };
        if complaint {
            self.complaints.push(format!("{method}: {about}"));
        }
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut found = self.ask("Runtime.evaluate", params);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        found["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let started = Instant::now();
        while self.value(&format!("(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()"))
            != json!(true)
        {
            assert!(started.elapsed() < TIME_OUT, "never: {expression}; {:?}", self.complaints);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Clicks with the mouse into an element, at a share of its width.
    pub fn click(&mut self, element: &str, share: f64) {
        let place = format!(
            "(() => {{ const it = {element}; it.scrollIntoView({{block: 'center'}}); const b = it.getBoundingClientRect(); \
             return [b.left + {share} * b.width, b.top + b.height / 2]; }})()"
        );
        let at = self.value(&place);
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", params);
        }
    }

    /// The window: its width, and whether it is dark.
    pub fn dress(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.ask("Emulation.setEmulatedMedia", features);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
