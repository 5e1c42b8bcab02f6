//! The one place that knows how messages become bytes: bincode's standard form with a limit.

use serde::{Serialize, de::DeserializeOwned};

use crate::protocol::{MAX_MESSAGE, Request, Response};

/// Why bytes are not a message.
#[derive(Debug)]
pub(crate) struct Malformed;

const fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MAX_MESSAGE>()
}

/// Writes a message over whatever `out` held.
///
/// # Errors
/// The message is larger than a packet may be.
pub(crate) fn encode<T: Serialize>(message: &T, out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.clear();
    bincode::serde::encode_into_std_write(message, out, config()).map_err(|_| Malformed)?;
    if out.len() > MAX_MESSAGE { Err(Malformed) } else { Ok(()) }
}

/// Reads a message that fills all of `bytes`.
///
/// # Errors
/// It is cut short, has bytes left over, claims more than the limit, or has an unknown tag.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    match bincode::serde::decode_from_slice(bytes, config()) {
        Ok((message, used)) if used == bytes.len() => Ok(message),
        _ => Err(Malformed),
    }
}

/// Decodes bytes as both kinds of messages, for a fuzzer: it must return whatever they are. A message that
/// decodes must decode to the same again after encoding.
pub fn fuzz_decode(data: &[u8]) {
    let mut buffer = Vec::new();
    if let Ok(message) = decode::<Request>(data)
        && encode(&message, &mut buffer).is_ok()
    {
        assert_eq!(decode::<Request>(&buffer).ok(), Some(message));
    }
    if let Ok(message) = decode::<Response>(data)
        && encode(&message, &mut buffer).is_ok()
    {
        assert_eq!(decode::<Response>(&buffer).ok(), Some(message));
    }
}
