//! Policy files as they were before they had a sum, so that a change of them meets the checks behind it.

/// The same file in version 1.
pub fn version_1(bytes: &[u8]) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
    let start = header.find(r#"\"version\":2,\"sha256\":\""#).expect("a file of version 2");
    let end = start + r#"\"version\":2,\"sha256\":\"\","#.len() + 64;
    let header = format!(r#"{}\"version\":1,{}"#, &header[..start], &header[end..]);
    let padded = format!("{header}{}", " ".repeat(header.len().next_multiple_of(8) - header.len()));
    [&(padded.len() as u64).to_le_bytes(), padded.as_bytes(), &bytes[8 + length..]].concat()
}
