//! The conformance suite of [`Blobs`].
#![expect(clippy::unwrap_used, reason = "a case fails by panicking")]

use std::sync::Arc;

use super::limits::BLOB_BYTES_MAX;
use super::{BlobDigest, BlobError, Blobs};

/// Runs every case on blobs that `fresh` makes, with nothing in them.
pub async fn run_all(fresh: &(dyn Fn() -> Arc<dyn Blobs> + Sync)) {
    bytes_come_back_as_they_were(&*fresh()).await;
    keeping_twice_is_keeping_once(&*fresh()).await;
    lists_are_in_order_and_in_pages(&*fresh()).await;
    removed_blobs_are_gone_and_can_come_back(&*fresh()).await;
    a_blob_has_a_bound(&*fresh()).await;
    many_may_keep_the_same_at_once(fresh()).await;
}

async fn bytes_come_back_as_they_were(blobs: &dyn Blobs) {
    for bytes in [Vec::new(), vec![0], (0..=255).collect(), vec![7; 3 << 20]] {
        let digest = blobs.put(bytes.clone()).await.unwrap();
        assert_eq!(digest, BlobDigest::of(&bytes));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(blobs.get(digest).await.unwrap(), Some(bytes));
    }
    assert_eq!(blobs.get(BlobDigest::of(b"never kept")).await.unwrap(), None);
}

async fn keeping_twice_is_keeping_once(blobs: &dyn Blobs) {
    let once = blobs.put(b"same".to_vec()).await.unwrap();
    assert_eq!(blobs.put(b"same".to_vec()).await.unwrap(), once);
    assert_eq!(blobs.list(None, 10).await.unwrap(), [(once, 4)]);
}

async fn lists_are_in_order_and_in_pages(blobs: &dyn Blobs) {
    assert_eq!(blobs.list(None, 10).await.unwrap(), []);
    let mut kept = Vec::new();
    for number in 0..40_u32 {
        let bytes = number.to_string().into_bytes();
        let len = bytes.len() as u64;
        kept.push((blobs.put(bytes).await.unwrap(), len));
    }
    kept.sort_unstable();
    assert_eq!(blobs.list(None, 100).await.unwrap(), kept);
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = blobs.list(after, 7).await.unwrap();
        assert!(page.len() <= 7);
        let Some((last, _)) = page.last() else { break };
        after = Some(*last);
        paged.extend(page);
    }
    assert_eq!(paged, kept);
}

async fn removed_blobs_are_gone_and_can_come_back(blobs: &dyn Blobs) {
    let (gone, stays) = (blobs.put(vec![1]).await.unwrap(), blobs.put(vec![2]).await.unwrap());
    assert!(blobs.remove(gone).await.unwrap());
    assert!(!blobs.remove(gone).await.unwrap());
    assert_eq!(blobs.get(gone).await.unwrap(), None);
    assert_eq!(blobs.list(None, 10).await.unwrap(), [(stays, 1)]);
    assert_eq!(blobs.put(vec![1]).await.unwrap(), gone);
    assert_eq!(blobs.get(gone).await.unwrap(), Some(vec![1]));
}

async fn a_blob_has_a_bound(blobs: &dyn Blobs) {
    let refused = blobs.put(vec![0; BLOB_BYTES_MAX + 1]).await.unwrap_err();
    assert!(matches!(refused, BlobError::TooLarge { .. }), "{refused}");
    assert_eq!(blobs.list(None, 10).await.unwrap(), []);
}

async fn many_may_keep_the_same_at_once(blobs: Arc<dyn Blobs>) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let blobs = blobs.clone();
            tokio::spawn(async move { blobs.put(vec![9; 1 << 16]).await.unwrap() })
        })
        .collect();
    for task in tasks {
        let digest = task.await.unwrap();
        assert_eq!(blobs.get(digest).await.unwrap(), Some(vec![9; 1 << 16]));
    }
}
