//! Other formats in and out: plan, stage, verify, cut over, roll back.
