//! Downloads from a server on this machine that misbehaves in every way it can.

use std::cell::RefCell;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::super::lzw::tests::encode;
use super::*;

/// Answers one connection each with the next of the given bytes, then closes it. Gives up after ten seconds.
struct Server {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<()>,
}

impl Server {
    fn start(answers: Vec<Vec<u8>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}/file", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, deadline) = (heads.clone(), Instant::now() + Duration::from_secs(10));
        let thread = thread::spawn(move || {
            for answer in answers {
                let Some(mut stream) = accept(&listener, deadline) else { return };
                seen.lock().unwrap().push(head(&mut stream));
                let _ = stream.write_all(&answer);
                if answer.is_empty() {
                    thread::sleep(Duration::from_millis(600)); // longer than the client's patience
                }
            }
        });
        Server { url, heads, thread }
    }

    /// The requests it got, after all answers have been given.
    fn requests(self) -> Vec<String> {
        self.thread.join().unwrap();
        self.heads.lock().unwrap().clone()
    }
}

fn accept(listener: &TcpListener, deadline: Instant) -> Option<TcpStream> {
    while Instant::now() < deadline {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            return Some(stream);
        }
        thread::sleep(Duration::from_millis(2));
    }
    None
}

/// A request up to its blank line, in lower case.
fn head(stream: &mut TcpStream) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap().to_ascii_lowercase()
}

fn answer(status: &str, headers: &[String], body: &[u8]) -> Vec<u8> {
    let headers: String = headers.iter().map(|h| format!("{h}\r\n")).collect();
    [format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n").as_bytes(), body].concat()
}

fn whole(body: &[u8]) -> Vec<u8> {
    answer("200 OK", &[format!("Content-Length: {}", body.len())], body)
}

/// A whole answer of which only `n` bytes of the body arrive.
fn cut(body: &[u8], n: usize) -> Vec<u8> {
    answer("200 OK", &[format!("Content-Length: {}", body.len())], &body[..n])
}

/// The rest of the body from `at`, as a range that claims to begin at `claim`.
fn rest(body: &[u8], at: usize, claim: usize) -> Vec<u8> {
    let range = format!("Content-Range: bytes {claim}-{}/{}", body.len() - 1, body.len());
    answer("206 Partial Content", &[range, format!("Content-Length: {}", body.len() - at)], &body[at..])
}

fn status(status: &str) -> Vec<u8> {
    answer(status, &["Content-Length: 0".into()], b"")
}

/// A published file with that content, and a cache without it.
struct Case {
    content: Vec<u8>,
    file: DataFile,
    cache: tempfile::TempDir,
}

impl Case {
    fn new(packing: Packing) -> Case {
        let content: Vec<u8> = (0..200_000u64).map(|i| ((i * i) >> 7) as u8).collect();
        let sha256: &'static str = hash(&content).leak();
        let home = if packing == Packing::Plain { "http://home/set/file" } else { "http://home/set/file.Z" };
        let file = DataFile { path: "set/file", bytes: content.len() as u64, sha256, home, packing };
        Case { content, file, cache: tempfile::tempdir().unwrap() }
    }

    fn download(&self, url: &str) -> Result<Arrival, DataError> {
        self.download_with(Duration::from_secs(5), url)
    }

    fn download_with(&self, silence: Duration, url: &str) -> Result<Arrival, DataError> {
        let client = Client::with(silence, Duration::from_millis(1));
        download(&client, &self.file, url, self.cache.path(), &|_| ())
    }

    /// Every file in the cache, and its size.
    fn files(&self) -> Vec<(String, usize)> {
        let Ok(folder) = fs::read_dir(self.cache.path().join("set")) else { return Vec::new() };
        let mut files: Vec<(String, usize)> = folder
            .map(Result::unwrap)
            .map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len() as usize))
            .collect();
        files.sort();
        files
    }

    fn installed(&self) {
        assert_eq!(self.files(), [("file".to_owned(), self.content.len())]);
        assert!(fs::read(self.cache.path().join("set/file")).unwrap() == self.content);
    }

    /// What an earlier attempt left.
    fn leave_part(&self, bytes: &[u8]) {
        fs::create_dir_all(self.cache.path().join("set")).unwrap();
        fs::write(self.cache.path().join("set/file.part"), bytes).unwrap();
    }

    /// Nothing may be there, not even the folder.
    fn untouched(&self) {
        assert_eq!(fs::read_dir(self.cache.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_whole_file_is_installed_under_its_name_alone() {
    let case = Case::new(Packing::Plain);
    let server = Server::start(vec![whole(&case.content)]);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
    let requests = server.requests();
    assert!(requests[0].starts_with("get /file ") && !requests[0].contains("range:"), "{requests:?}");
}

#[test]
fn a_connection_that_is_cut_is_continued_where_it_broke_off() {
    let case = Case::new(Packing::Plain);
    let answers = vec![cut(&case.content, 70_000), rest(&case.content, 70_000, 70_000)];
    let server = Server::start(answers);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
    assert!(server.requests()[1].contains("range: bytes=70000-\r\n"));
}

#[test]
fn a_download_that_fails_for_good_is_continued_by_the_next_one() {
    let case = Case::new(Packing::Plain);
    let busy = || status("503 Service Unavailable");
    let server = Server::start(vec![cut(&case.content, 50_000), busy(), busy(), busy()]);
    let error = case.download(&server.url).unwrap_err();
    assert!(matches!(error, DataError::Status { status: 503, .. }), "{error}");
    assert_eq!(server.requests().len(), 4);
    assert_eq!(case.files(), [("file.part".to_owned(), 50_000)]);

    let server = Server::start(vec![rest(&case.content, 50_000, 50_000)]);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
    assert!(server.requests()[0].contains("range: bytes=50000-\r\n"));
}

#[test]
fn a_server_without_ranges_makes_it_begin_again() {
    let case = Case::new(Packing::Plain);
    case.leave_part(&case.content[..1000]);
    let server = Server::start(vec![whole(&case.content)]);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
    assert!(server.requests()[0].contains("range: bytes=1000-\r\n"));
}

#[test]
fn a_range_that_was_not_asked_for_makes_it_begin_again() {
    let case = Case::new(Packing::Plain);
    let refusals = [rest(&case.content, 2000, 2000), status("416 Range Not Satisfiable")];
    for refusal in refusals {
        case.leave_part(&case.content[..1000]);
        let server = Server::start(vec![refusal, whole(&case.content)]);
        assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
        case.installed();
        assert!(!server.requests()[1].contains("range:"));
        fs::remove_file(case.cache.path().join("set/file")).unwrap();
    }
}

#[test]
fn a_beginning_that_is_wrong_ends_in_a_refusal_and_does_not_stay() {
    let case = Case::new(Packing::Plain);
    case.leave_part(b"something else");
    let server = Server::start(vec![rest(&case.content, 14, 14)]);
    assert!(matches!(case.download(&server.url), Err(DataError::Hash { .. })));
    assert_eq!(case.files(), []);
    let server = Server::start(vec![whole(&case.content)]);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
}

#[test]
fn wrong_content_is_refused_with_both_hashes_and_nothing_is_installed() {
    let case = Case::new(Packing::Plain);
    let server = Server::start(vec![whole(b"<html>not here</html>")]);
    let error = case.download(&server.url).unwrap_err().to_string();
    assert!(error.contains(case.file.sha256), "{error}");
    assert!(error.contains(&hash(b"<html>not here</html>")), "{error}");
    assert!(error.contains(&server.url) && !error.contains('\n'), "{error}");
    case.untouched();
}

#[test]
fn wrong_content_leaves_the_file_that_was_there() {
    let case = Case::new(Packing::Plain);
    fs::create_dir(case.cache.path().join("set")).unwrap();
    fs::write(case.cache.path().join("set/file"), b"older").unwrap();
    let server = Server::start(vec![whole(b"wrong")]);
    assert!(case.download(&server.url).is_err());
    assert_eq!(case.files(), [("file".to_owned(), 5)]);
    let server = Server::start(vec![whole(&case.content)]);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
}

#[test]
fn content_without_end_is_refused() {
    let case = Case::new(Packing::Plain);
    let endless = vec![b'x'; case.file.limit() as usize + 100_000];
    let server = Server::start(vec![answer("200 OK", &[], &endless)]);
    assert!(matches!(case.download(&server.url), Err(DataError::TooLong { .. })));
    case.untouched();
}

#[test]
fn a_missing_file_is_refused_at_once() {
    let case = Case::new(Packing::Plain);
    let server = Server::start(vec![status("404 Not Found")]);
    let error = case.download(&server.url).unwrap_err().to_string();
    assert!(error.contains("status 404") && error.contains(&server.url) && error.contains("--from"), "{error}");
    assert_eq!(server.requests().len(), 1);
    case.untouched();
}

#[test]
fn a_body_without_a_length_that_ends_early_is_continued() {
    let case = Case::new(Packing::Plain);
    let server =
        Server::start(vec![answer("200 OK", &[], &case.content[..90_000]), rest(&case.content, 90_000, 90_000)]);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
    assert!(server.requests()[1].contains("range: bytes=90000-\r\n"));
}

#[test]
fn a_silent_server_is_given_up() {
    let case = Case::new(Packing::Plain);
    let server = Server::start(vec![Vec::new(); 4]);
    let error = case.download_with(Duration::from_millis(200), &server.url).unwrap_err();
    assert!(matches!(error, DataError::Network { .. }) && error.to_string().contains("timeout"), "{error}");
    assert_eq!(server.requests().len(), 4);
    case.untouched();
}

#[test]
fn no_server_at_all_is_one_line_with_the_cure() {
    let case = Case::new(Packing::Plain);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = case.download(&format!("http://{closed}/file")).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot download `http://{closed}/file`: ")), "{error}");
    assert!(error.contains("--from DIR") && !error.contains('\n'), "{error}");
    case.untouched();
}

#[test]
fn a_moved_file_is_followed() {
    let case = Case::new(Packing::Plain);
    let end = Server::start(vec![whole(&case.content)]);
    let moved = answer("302 Found", &[format!("Location: {}", end.url), "Content-Length: 0".into()], b"");
    let server = Server::start(vec![moved]);
    assert_eq!(case.download(&server.url).unwrap(), Arrival::Installed);
    case.installed();
}

#[test]
fn a_complete_part_needs_no_network() {
    let case = Case::new(Packing::Plain);
    case.leave_part(&case.content);
    assert_eq!(case.download("http://127.0.0.1:1/file").unwrap(), Arrival::Installed);
    case.installed();
}

#[test]
fn two_downloads_of_one_file_do_not_meet() {
    let case = Case::new(Packing::Plain);
    fs::create_dir(case.cache.path().join("set")).unwrap();
    let other = Part::open(case.cache.path().join("set/file.part"), 10).unwrap();
    let error = case.download("http://127.0.0.1:1/file").unwrap_err().to_string();
    assert!(error.starts_with("another process is downloading"), "{error}");
    assert_eq!(case.files(), [("file.part".to_owned(), 0)]);
    drop(other);
}

#[test]
fn a_compressed_file_is_unpacked_and_its_content_checked() {
    let case = Case::new(Packing::UnixCompress);
    let packed = encode(&case.content, 16, Some(10_000));
    let server = Server::start(vec![whole(&packed)]);
    let told = RefCell::new(Vec::new());
    let client = Client::with(Duration::from_secs(5), Duration::from_millis(1));
    let report = |done| told.borrow_mut().push(done);
    download(&client, &case.file, &server.url, case.cache.path(), &report).unwrap();
    case.installed();
    let told = told.into_inner();
    assert!(told.is_sorted() && told.last() == Some(&case.file.bytes), "{told:?}");

    for wrong in [encode(b"other", 16, None), vec![0x1f, 0x9d, 0x90, 0xff, 0xff], vec![0x1f, 0x9d, 0xff]] {
        let case = Case::new(Packing::UnixCompress);
        let server = Server::start(vec![whole(&wrong)]);
        let error = case.download(&server.url).unwrap_err();
        assert!(matches!(error, DataError::Hash { .. } | DataError::Unpack { .. }), "{error}");
        case.untouched();
    }
}

#[test]
fn a_mirror_has_the_caches_folders_and_the_homes_names() {
    let address = |data: RealData| data.files()[0].at("http://mirror/data/");
    assert_eq!(address(RealData::Statlog), "http://mirror/data/shuttle/shuttle.trn.Z");
    assert_eq!(address(RealData::Mnist), "http://mirror/data/mnist/train-images-idx3-ubyte.gz");
}
