//! A real Chromium without a window, one short-lived process per page.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const TIME_OUT: Duration = Duration::from_secs(90);

/// What a visit left behind.
pub struct Visit {
    /// The document at the end.
    pub dom: String,
    /// The browser's log, with the page's console.
    pub log: String,
}

/// The browser of this machine, if it has one: `CHROMIUM`, else the usual names in `PATH`.
pub fn find() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH")?;
    named.into_iter().find(|path| path.is_file()).or_else(|| {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|path| path.is_file())
    })
}

/// Opens a page in a profile of its own below `dir`, ends the browser when it is done or late.
pub fn visit(browser: &Path, dir: &Path, page: &Path, options: &[&str]) -> Visit {
    let [dom, log] = ["dom.html", "log.txt"].map(|name| dir.join(name));
    let mut child = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions"])
        .args(["--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .args(options)
        .arg(format!("file://{}", page.display()))
        .stdout(File::create(&dom).expect("the temporary folder can be written"))
        .stderr(File::create(&log).expect("the temporary folder can be written"))
        .spawn()
        .expect("the browser that was found starts");
    let start = Instant::now();
    while child.try_wait().expect("a child can be asked").is_none() {
        if start.elapsed() > TIME_OUT {
            child.kill().expect("a child can be ended");
            child.wait().expect("a child can be waited for");
            panic!("the browser did not end within {TIME_OUT:?}: {}", fs::read_to_string(&log).unwrap_or_default());
        }
        sleep(Duration::from_millis(30));
    }
    let [dom, log] = [dom, log].map(|file| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned());
    Visit { dom, log }
}
