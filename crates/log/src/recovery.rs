//! The table of what each state of the tail means. Pure: facts in, a decision out.

/// What stands at the place where the next frame is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A frame that continues the chain.
    Fits,
    /// A frame whose checksum is right and that does not continue the chain.
    Foreign,
    /// Bytes that are not a frame.
    Unreadable,
    /// Nothing: the segment ends, and no later one has anything.
    Nothing,
}

/// Everything the decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailFacts {
    /// What stands there.
    pub found: Found,
    /// An offset row, the checkpoint or the manifest knows a record of this number: it was durable.
    pub witnessed: bool,
    /// A good frame of a later write follows, in this segment or in a later one: what was expected here
    /// had been synced before that was written.
    pub vouched: bool,
    /// The last frames taken are a batch that is not whole.
    pub mid_batch: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take the frame and go on.
    Accept,
    /// The log ends here, cleanly.
    End,
    /// An unacknowledged tail: leave it behind, count it.
    Torn,
    /// A record that was acknowledged cannot be read: report it, trim nothing.
    AcknowledgedLost,
    /// Damage in the middle of the log: report it, trim nothing.
    Rot,
    /// A frame that is not of this chain: report it, trim nothing.
    NotOurs,
}

/// The table. Rows are looked at in order; the last one takes what is left.
#[must_use]
pub fn decide(facts: TailFacts) -> Decision {
    match facts.found {
        Found::Fits => Decision::Accept,
        Found::Foreign => Decision::NotOurs,
        Found::Unreadable | Found::Nothing if facts.witnessed => Decision::AcknowledgedLost,
        Found::Unreadable | Found::Nothing if facts.vouched => Decision::Rot,
        Found::Unreadable => Decision::Torn,
        Found::Nothing if facts.mid_batch => Decision::Torn,
        Found::Nothing => Decision::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of `docs/RECOVERY.md`, written a second time as rows that name every fact they need
    /// (`None`: any). Exactly one row must fit each combination.
    type Row = (Found, Option<bool>, Option<bool>, Option<bool>, Decision);
    const ROWS: [Row; 9] = [
        (Found::Fits, None, None, None, Decision::Accept),
        (Found::Foreign, None, None, None, Decision::NotOurs),
        (Found::Unreadable, Some(true), None, None, Decision::AcknowledgedLost),
        (Found::Unreadable, Some(false), Some(true), None, Decision::Rot),
        (Found::Unreadable, Some(false), Some(false), None, Decision::Torn),
        (Found::Nothing, Some(true), None, None, Decision::AcknowledgedLost),
        (Found::Nothing, Some(false), Some(true), None, Decision::Rot),
        (Found::Nothing, Some(false), Some(false), Some(true), Decision::Torn),
        (Found::Nothing, Some(false), Some(false), Some(false), Decision::End),
    ];

    #[test]
    fn every_combination_of_facts_has_exactly_one_row() {
        let fits = |want: Option<bool>, is: bool| want.is_none_or(|want| want == is);
        for found in [Found::Fits, Found::Foreign, Found::Unreadable, Found::Nothing] {
            for bits in 0..8 {
                let [witnessed, vouched, mid_batch] =
                    [bits & 1, bits & 2, bits & 4].map(|b| b != 0);
                let facts = TailFacts { found, witnessed, vouched, mid_batch };
                let rows: Vec<_> = ROWS
                    .iter()
                    .filter(|row| {
                        row.0 == found
                            && fits(row.1, witnessed)
                            && fits(row.2, vouched)
                            && fits(row.3, mid_batch)
                    })
                    .collect();
                assert_eq!(rows.len(), 1, "{facts:?}");
                assert_eq!(rows[0].4, decide(facts), "{facts:?}");
            }
        }
    }
}
