//! Blobs in a data directory: the suite of every implementation, damage, power cuts, leftovers.

use std::sync::Arc;

use bough_platform::{Platform, RelPath};
use bough_store::blobs::limits::UNFINISHED_AGE_MS_MAX;
use bough_store::blobs::{BlobDigest, BlobError, Blobs, NativeBlobs, conformance};
use bough_testkit::{Damage, ImageRules, SimClock, SimDisk, SimEntropy};

fn open_at(disk: SimDisk, now_ms: i64) -> NativeBlobs {
    let clock = Arc::new(SimClock::at(now_ms));
    let disk = Arc::new(disk.with_clock(clock.clone()));
    NativeBlobs::open(Platform { disk, clock, entropy: Arc::new(SimEntropy::new(7)) }).unwrap()
}

fn open(disk: SimDisk) -> NativeBlobs {
    open_at(disk, 1)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[tokio::test]
async fn a_data_directory_keeps_the_promises_of_blobs() {
    conformance::run_all(&|| {
        let root = tempfile::tempdir().unwrap().keep();
        Arc::new(NativeBlobs::open(Platform::system(root).unwrap()).unwrap())
    })
    .await;
}

#[tokio::test]
async fn damage_is_named_and_never_returned() {
    let disk = SimDisk::new();
    let digest = open(disk.clone()).put(b"some content".to_vec()).await.unwrap();
    let (path, bytes) = disk.files().into_iter().next().unwrap();
    for damage in Damage::every_bit(&path, bytes.len()) {
        let found = open(damage.done_to(&disk).unwrap()).get(digest).await.unwrap_err();
        assert!(
            matches!(&found, BlobError::Corrupt { digest: of, .. } if *of == digest),
            "{found}"
        );
    }
}

/// Whatever the power cut leaves, an acknowledged blob is whole, and another is whole or absent.
#[test]
fn a_power_cut_leaves_whole_blobs() {
    let disk = SimDisk::new();
    disk.record();
    let contents = [b"first".to_vec(), b"second".to_vec(), b"first".to_vec()];
    let mut acknowledged = Vec::new();
    runtime().block_on(async {
        let blobs = open(disk.clone());
        for bytes in &contents {
            let digest = blobs.put(bytes.clone()).await.unwrap();
            acknowledged.push((disk.operations(), digest));
        }
    });
    let mut images = 0;
    disk.recording().walk(|point| {
        point.images(&ImageRules::seeded(1), |image| {
            images += 1;
            runtime().block_on(async {
                let blobs = open(image.disk());
                for bytes in &contents {
                    let digest = BlobDigest::of(bytes);
                    let is_due = acknowledged
                        .iter()
                        .any(|(number, of)| *of == digest && *number <= point.number());
                    let found = blobs.get(digest).await.unwrap();
                    let is_right = found.as_ref().map_or(!is_due, |found| found == bytes);
                    assert!(is_right, "{digest} after {} operations: {found:?}", point.number());
                }
            });
        });
    });
    assert!(images > 10, "{images}");
}

#[tokio::test]
async fn old_leftovers_go_and_young_ones_stay() {
    let disk = SimDisk::new();
    let digest = open(disk.clone()).put(vec![1]).await.unwrap();
    let left = RelPath::parse("blobs/unfinished/left").unwrap();
    disk.plant(&left, b"half").unwrap();
    let has_it = |disk: &SimDisk| disk.files().iter().any(|(path, _)| *path == left);
    open_at(disk.clone(), UNFINISHED_AGE_MS_MAX);
    assert!(has_it(&disk));
    let later = open_at(disk.clone(), 2 * UNFINISHED_AGE_MS_MAX);
    assert!(!has_it(&disk));
    assert_eq!(later.get(digest).await.unwrap(), Some(vec![1]));
    assert_eq!(later.list(None, 10).await.unwrap(), [(digest, 1)]);
}
