//! Sums of bytes as people and files write them.

/// Two hexadecimal digits for each byte.
pub(crate) fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
