//! Damage to durable data: rot, truncation, and files that are missing or replaced.

use std::io;

use bough_platform::RelPath;

use super::disk::SimDisk;
use crate::limits::SECTOR_BYTES;

/// One unnoticed change of a durable file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Damage {
    /// One bit is the other way round.
    FlippedBit {
        /// Which file.
        path: RelPath,
        /// Which bit, counted from the file's first.
        bit: u64,
    },
    /// One sector is all zeros.
    ZeroedSector {
        /// Which file.
        path: RelPath,
        /// Which sector, counted from the file's first.
        sector: u64,
    },
    /// One sector has the content of another.
    CopiedSector {
        /// Which file.
        path: RelPath,
        /// Where the bytes came from.
        from: u64,
        /// Where they landed.
        to: u64,
    },
    /// The file ends early.
    Truncated {
        /// Which file.
        path: RelPath,
        /// Its new length.
        len: u64,
    },
    /// The file is gone.
    Missing {
        /// Which file.
        path: RelPath,
    },
    /// Two files have changed places.
    Swapped {
        /// One of them.
        path: RelPath,
        /// The other.
        with: RelPath,
    },
    /// One file has the content of another.
    Duplicated {
        /// Whose bytes.
        from: RelPath,
        /// The file that has them now too; it need not have been there.
        to: RelPath,
    },
    /// A file holds bytes from elsewhere.
    Foreign {
        /// Which file; it need not have been there.
        path: RelPath,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

impl Damage {
    /// Every bit of a file, one at a time.
    pub fn every_bit(path: &RelPath, len: usize) -> impl Iterator<Item = Self> {
        let path = path.clone();
        (0..len as u64 * 8).map(move |bit| Self::FlippedBit { path: path.clone(), bit })
    }

    /// Every shorter length of a file, one at a time.
    pub fn every_truncation(path: &RelPath, len: usize) -> impl Iterator<Item = Self> {
        let path = path.clone();
        (0..len as u64).map(move |len| Self::Truncated { path: path.clone(), len })
    }

    /// Every sector of a file zeroed, and every sector put in the place of every other.
    #[must_use]
    pub fn every_sector(path: &RelPath, len: usize) -> Vec<Self> {
        let sectors = (len as u64).div_ceil(SECTOR_BYTES);
        let mut all = Vec::new();
        for sector in 0..sectors {
            let path = path.clone();
            all.push(Self::ZeroedSector { path, sector });
        }
        for from in 0..sectors {
            for to in (0..sectors).filter(|to| *to != from) {
                let path = path.clone();
                all.push(Self::CopiedSector { path, from, to });
            }
        }
        all
    }

    /// A copy of a disk with this damage, all of it durable. The disk itself does not change.
    pub fn done_to(&self, disk: &SimDisk) -> io::Result<SimDisk> {
        let damaged = disk.copy();
        self.apply(&damaged)?;
        Ok(damaged)
    }

    fn apply(&self, disk: &SimDisk) -> io::Result<()> {
        match self {
            Self::FlippedBit { path, bit } => edit(disk, path, |bytes| {
                let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << (bit % 8);
                }
            }),
            Self::ZeroedSector { path, sector } => edit(disk, path, |bytes| {
                if let Some(place) = sector_of(bytes, *sector) {
                    place.fill(0);
                }
            }),
            Self::CopiedSector { path, from, to } => edit(disk, path, |bytes| {
                let source = sector_of(bytes, *from).map(|place| place.to_vec());
                if let (Some(source), Some(place)) = (source, sector_of(bytes, *to)) {
                    place.iter_mut().zip(source).for_each(|(to, from)| *to = from);
                }
            }),
            Self::Truncated { path, len } => edit(disk, path, |bytes| {
                bytes.truncate(usize::try_from(*len).unwrap_or(usize::MAX));
            }),
            Self::Missing { path } => disk.uproot(path),
            Self::Swapped { path, with } => {
                let (one, other) = (read(disk, path)?, read(disk, with)?);
                disk.plant(path, &other)?;
                disk.plant(with, &one)
            }
            Self::Duplicated { from, to } => disk.plant(to, &read(disk, from)?),
            Self::Foreign { path, bytes } => disk.plant(path, bytes),
        }
    }
}

fn edit(disk: &SimDisk, path: &RelPath, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
    let mut bytes = read(disk, path)?;
    change(&mut bytes);
    disk.plant(path, &bytes)
}

fn read(disk: &SimDisk, path: &RelPath) -> io::Result<Vec<u8>> {
    let inner = disk.inner();
    let file = inner.state.file(inner.state.find(path)?);
    let file = file.ok_or(io::ErrorKind::IsADirectory)?;
    Ok(file.cache.bytes().to_vec())
}

fn sector_of(bytes: &mut [u8], sector: u64) -> Option<&mut [u8]> {
    let size = usize::try_from(SECTOR_BYTES).ok()?;
    let start = usize::try_from(sector).ok()?.checked_mul(size)?;
    let end = bytes.len().min(start.saturating_add(size));
    bytes.get_mut(start..end)
}
