//! Ids on the bus: UUIDs, as its clients expect them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bough_platform::Entropy;

/// Makes ids that are unique in this process. They can be guessed: only secrets must be unpredictable.
#[derive(Debug)]
pub(crate) struct Ids {
    entropy: Arc<dyn Entropy>,
    prefix: u64,
    next: AtomicU64,
}

/// 128 bits, written as a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BusId(pub(crate) u64, pub(crate) u64);

impl Ids {
    pub(crate) fn new(entropy: Arc<dyn Entropy>) -> std::io::Result<Self> {
        let BusId(prefix, start) = draw(&*entropy)?;
        Ok(Self { entropy, prefix, next: AtomicU64::new(start) })
    }

    /// A fresh id that cannot be guessed.
    pub(crate) fn secret(&self) -> std::io::Result<BusId> {
        draw(&*self.entropy)
    }

    /// A fresh id.
    pub(crate) fn fresh(&self) -> BusId {
        BusId(self.prefix, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl BusId {
    /// Reads a UUID.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_uuid = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        if !is_uuid {
            return None;
        }
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let (high, low) = halves(u128::from_str_radix(&digits, 16).ok()?);
        Some(Self(high, low))
    }
}

fn draw(entropy: &dyn Entropy) -> std::io::Result<BusId> {
    let mut random = [0; 16];
    entropy.fill(&mut random)?;
    let (high, low) = halves(u128::from_be_bytes(random));
    Ok(BusId(high, low))
}

#[expect(clippy::cast_possible_truncation, reason = "the halves of a number are cut on purpose")]
const fn halves(number: u128) -> (u64, u64) {
    ((number >> 64) as u64, number as u64)
}

impl std::fmt::Display for BusId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(high, low) = self;
        let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
    }
}

#[cfg(test)]
mod tests {
    use bough_platform::OsEntropy;

    use super::*;

    #[test]
    fn an_id_survives_its_text() {
        let ids = Ids::new(Arc::new(OsEntropy)).unwrap();
        let id = ids.fresh();
        assert_eq!(BusId::parse(&id.to_string()), Some(id));
        assert_ne!(ids.fresh(), id);
        let secrets = [ids.secret().unwrap(), ids.secret().unwrap()];
        assert!(secrets.iter().all(|secret| secret.0 != id.0), "{secrets:?}");
        assert_ne!(secrets[0].0, secrets[1].0, "no counter gives the next");
        assert_eq!(BusId(1, 2).to_string(), "00000000-0000-0001-0000-000000000002");
        for bad in
            ["", "x", "00000000-0000-0001-0000-00000000000", "00000000x0000-0001-0000-000000000002"]
        {
            assert_eq!(BusId::parse(bad), None, "{bad}");
        }
    }
}
