//! Parquet files that claim what cannot be: refused in words, before they cost anything.

#[path = "common/reading.rs"]
mod reading;

use std::path::{Path, PathBuf};

use neuralcb::{Contexts, Eligible, Encoding, Layout, LoggedData};
use neuralcb_logs::log::{LogOptions, write_parquet};

/// `$NEURALCB_SHARED/hostile`, else `../../shared/hostile` seen from this crate's folder; says so where it is absent.
fn hostile() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = std::env::var_os("NEURALCB_SHARED").map_or(here.join("../../shared"), PathBuf::from);
    let folder = shared.join("hostile");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no hostile files in {}", folder.display());
    None
}

fn refusal(bytes: &[u8]) -> String {
    reading::read(bytes, "parquet").unwrap_err().to_string()
}

/// A whole file of twenty rounds.
fn valid() -> Vec<u8> {
    let layout = Layout { dim: 3, n_actions: 2, encoding: Encoding::Disjoint };
    let x = (0..60).map(|i| (i * 7 % 11) as f32).collect();
    let contexts = Contexts::new(layout, x, Eligible::All).unwrap();
    let actions = (0..20).map(|t| t % 2).collect();
    let log = LoggedData::new(contexts, actions, vec![0.5; 20], Some(vec![0.5; 20])).unwrap();
    let mut bytes = Vec::new();
    write_parquet(&log, &mut bytes).unwrap();
    bytes
}

/// A file of nothing but a table of contents.
fn contents(footer: &[u8]) -> Vec<u8> {
    [b"PAR1", footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// The valid file with more fields at the end of its table of contents.
fn with_fields(fields: &[u8]) -> Vec<u8> {
    let valid = valid();
    let end = valid.len() - 8;
    let length = u32::from_le_bytes(valid[end..end + 4].try_into().unwrap()) + fields.len() as u32;
    [&valid[..end - 1], fields, &[0], &length.to_le_bytes(), b"PAR1"].concat()
}

#[test]
fn an_unknown_field_is_passed_over() {
    // field 100: the text "ab"
    assert_eq!(reading::read(&with_fields(&[0x08, 0xc8, 1, 2, b'a', b'b']), "parquet").unwrap(), 20);
}

#[test]
fn a_list_that_claims_more_than_there_is_is_refused_before_it_is_counted() {
    // field 100: a list of lists, of which each claims 2³¹ − 1 truths; the decoder would count to it for every one
    let truths = [0xf1, 0xff, 0xff, 0xff, 0xff, 0x07];
    let message = refusal(&with_fields(&[&[0x09, 0xc8, 1, 0xf9, 200, 1][..], &truths.repeat(200)].concat()));
    assert!(message.contains("it claims more than there is"), "{message}");
    // as many truths as there are bytes: the decoder would take none of them
    let message = refusal(&with_fields(&[&[0x09, 0xc8, 1, 0xf1, 100][..], &[1; 100]].concat()));
    assert!(message.contains("list of truths"), "{message}");
}

#[test]
fn a_schema_of_ten_thousand_levels_is_refused() {
    let levels = 10_000usize;
    let n = levels + 1;
    let mut footer = vec![0x15, 4, 0x19, 0xfc, (n & 0x7f) as u8 | 0x80, (n >> 7) as u8];
    footer.extend([0x48, 1, b'a', 0x15, 2, 0].repeat(levels));
    footer.extend([0x15, 2, 0x38, 1, b'a', 0, 0x16, 0, 0x19, 0x0c, 0]);
    let message = refusal(&contents(&footer));
    assert!(message.contains("nested deeper than 64 levels"), "{message}");
}

#[test]
fn more_rows_than_the_bytes_can_hold_are_refused() {
    let bytes = valid();
    let end = bytes.len() - 8;
    // 20 rows, as the numbers of rows of the file and of its only group stand there: field 3 after field 2
    let twenty: Vec<usize> = (0..end - 1).filter(|&i| bytes[i..i + 2] == [0x16, 40]).collect();
    assert!(!twenty.is_empty());
    let mut refused = 0;
    for at in twenty {
        let mut more = bytes.clone();
        more.splice(at + 1..at + 2, [0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
        let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) + 5;
        let n = more.len();
        more[n - 8..n - 4].copy_from_slice(&length.to_le_bytes());
        // Where it is no number of rows, but one of values or bytes, the file may be read or refused for another
        // reason.
        let read = reading::read(&more, "parquet");
        refused += usize::from(read.is_err_and(|e| e.to_string().contains("of its length")));
    }
    assert!(refused > 0);
}

#[test]
fn a_file_that_is_cut_off_says_so() {
    let bytes = valid();
    let message = refusal(&bytes[..bytes.len() - 30]);
    assert!(message.contains("may be cut off"), "{message}");
}

#[test]
fn the_files_that_were_found_are_refused_or_read() {
    let Some(folder) = hostile() else { return };
    for (name, says) in [
        ("parquet-skip-10s.parquet", Some("more than there is")),
        ("fuzz-hang.parquet", None),
        ("fuzz-crash.parquet", None),
        ("deep1000.parquet", Some("nested deeper")),
        // texts of a dictionary are not copied, so that 100,000 rows that refer to one take 26 MB
        ("dict200.parquet", None),
    ] {
        let read = reading::read_path(&folder.join(name), &LogOptions::default()).map_err(|e| e.to_string());
        println!("{name}: {read:?}");
        if let Some(says) = says {
            assert!(read.as_ref().is_err_and(|message| message.contains(says)), "{name}: {read:?}");
        }
    }
}
