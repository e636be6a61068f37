use std::any::Any;
use std::fmt::Debug;

use crate::record::RecordView;

/// What somebody makes of a log: a value that every record in order changes. The log keeps it up to
/// date, carries its snapshot in checkpoints and gives it back at opening; what it means is not the
/// log's business.
pub trait Fold: Send + Sync + Debug {
    /// Takes one more record into account. Must not fail: a record that it does not understand is a
    /// record that changes nothing.
    fn apply(&mut self, record: &RecordView<'_>);
    /// The value as one JSON value, from which [`FoldMaker::restore`] makes an equal one.
    fn snapshot(&self) -> String;
    /// A copy.
    fn boxed(&self) -> Box<dyn Fold>;
    /// For the owner to get its own type back.
    fn as_any(&self) -> &dyn Any;
}

/// Makes folds.
pub trait FoldMaker: Send + Sync + Debug {
    /// The value of a log before its first record.
    fn start(&self, id: &str) -> Box<dyn Fold>;
    /// The value of a snapshot; `None` when it cannot be used, so that all records are folded again.
    fn restore(&self, snapshot: &str) -> Option<Box<dyn Fold>>;
}

/// A fold of nothing, for logs whose owner keeps no value.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFold;

impl Fold for NoFold {
    fn apply(&mut self, _: &RecordView<'_>) {}

    fn snapshot(&self) -> String {
        "null".to_owned()
    }

    fn boxed(&self) -> Box<dyn Fold> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl FoldMaker for NoFold {
    fn start(&self, _: &str) -> Box<dyn Fold> {
        Box::new(*self)
    }

    fn restore(&self, _: &str) -> Option<Box<dyn Fold>> {
        Some(Box::new(*self))
    }
}
