use std::fmt;

/// The results of a run of the harness.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Distinct pairs of crash image and oracle state that were judged.
    pub images: u64,
    /// Of these, images left by a crash during the recovery of another image.
    pub depth_two: u64,
    /// Acknowledged records that the judge did not find.
    pub acknowledged_lost: u64,
    /// Records that the judge found and that were never appended there.
    pub invented: u64,
    /// Other broken promises: partial batches, openings that differ, refused appends, wrong
    /// reports.
    pub broken: u64,
    /// Single bits flipped.
    pub bit_flips: u64,
    /// Other damage done: truncations, zeroed and copied sectors, missing, swapped, foreign files.
    pub other_damage: u64,
    /// Damage that changed an answer and was not reported.
    pub silent: u64,
    /// Disk calls that were made to fail.
    pub io_faults: u64,
    /// Steps of random histories compared with the oracle.
    pub model_steps: u64,
    /// Processes killed while an append was in flight.
    pub kills: u64,
    /// Of these, in a process that keeps unsynced writes in its memory.
    pub lossy_kills: u64,
    /// Safety steps that were removed on purpose.
    pub canaries: u64,
    /// Of these, how many the harness noticed.
    pub canaries_caught: u64,
    /// Moments whose images were too many to enumerate and were sampled.
    pub sampled_moments: u64,
    /// Moments that were enumerated or sampled.
    pub moments: u64,
    /// The seed of all samples.
    pub seed: u64,
    /// How long it took.
    pub seconds: f64,
    /// The first failures, each with how to repeat it.
    pub failures: Vec<String>,
    /// Canaries that were not noticed.
    pub canaries_missed: Vec<String>,
}

/// Messages that are kept of similar failures; the rest are only counted.
const ALIKE_KEPT: usize = 3;

/// The message of a failure without its place and its numbers.
fn kind_of(failure: &str) -> String {
    let words = failure.split_once(": ").map_or(failure, |(_, words)| words);
    words.chars().filter(|c| !c.is_ascii_digit()).take(60).collect()
}

impl Report {
    /// Whether every promise was kept and every canary caught.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let broken = self.acknowledged_lost + self.invented + self.silent + self.broken;
        broken == 0 && self.failures.is_empty() && self.canaries == self.canaries_caught
    }

    /// One JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut members: Vec<String> =
            self.figures().iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        members.push(format!("\"seconds\":{:.1}", self.seconds));
        members.push(format!("\"failures\":{}", json_list(&self.failures)));
        members.push(format!("\"canaries_missed\":{}", json_list(&self.canaries_missed)));
        format!("{{{}}}", members.join(","))
    }

    const fn figures(&self) -> [(&'static str, u64); 17] {
        [
            ("images", self.images),
            ("depth_two", self.depth_two),
            ("acknowledged_lost", self.acknowledged_lost),
            ("invented", self.invented),
            ("broken", self.broken),
            ("bit_flips", self.bit_flips),
            ("other_damage", self.other_damage),
            ("silent", self.silent),
            ("io_faults", self.io_faults),
            ("model_steps", self.model_steps),
            ("kills", self.kills),
            ("lossy_kills", self.lossy_kills),
            ("canaries", self.canaries),
            ("canaries_caught", self.canaries_caught),
            ("moments", self.moments),
            ("sampled_moments", self.sampled_moments),
            ("seed", self.seed),
        ]
    }

    /// Adds the report of another part of the run.
    pub(crate) fn add(&mut self, other: Self) {
        self.images += other.images;
        self.depth_two += other.depth_two;
        self.acknowledged_lost += other.acknowledged_lost;
        self.invented += other.invented;
        self.broken += other.broken;
        self.bit_flips += other.bit_flips;
        self.other_damage += other.other_damage;
        self.silent += other.silent;
        self.io_faults += other.io_faults;
        self.model_steps += other.model_steps;
        self.kills += other.kills;
        self.lossy_kills += other.lossy_kills;
        self.canaries += other.canaries;
        self.canaries_caught += other.canaries_caught;
        self.moments += other.moments;
        self.sampled_moments += other.sampled_moments;
        self.canaries_missed.extend(other.canaries_missed);
        for failure in other.failures {
            self.keep(failure);
        }
    }

    /// Counts a broken promise and keeps its message.
    pub(crate) fn fail(&mut self, verdict: &Verdict, place: &str) {
        match verdict.kind {
            Kind::Lost => self.acknowledged_lost += 1,
            Kind::Invented => self.invented += 1,
            Kind::Silent => self.silent += 1,
            Kind::Broken => self.broken += 1,
        }
        self.keep(format!("{place}: {verdict}"));
    }

    /// Keeps a failure's message, unless there are enough similar ones.
    fn keep(&mut self, failure: String) {
        let alike = |kept: &&String| kind_of(kept) == kind_of(&failure);
        if self.failures.iter().filter(alike).count() < ALIKE_KEPT {
            self.failures.push(failure);
        }
    }

    /// How many promises were broken.
    pub(crate) const fn failed(&self) -> u64 {
        self.acknowledged_lost + self.invented + self.silent + self.broken
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.figures() {
            writeln!(f, "{:<20} {value:>12}", name.replace('_', " "))?;
        }
        writeln!(f, "{:<20} {:>12.1}", "seconds", self.seconds)?;
        for failure in &self.failures {
            writeln!(f, "FAILED {failure}")?;
        }
        for canary in &self.canaries_missed {
            writeln!(f, "MISSED canary {canary}")?;
        }
        Ok(())
    }
}

fn json_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| json_text(text)).collect();
    format!("[{}]", quoted.join(","))
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// P1: an acknowledged record is not there.
    Lost,
    /// P3: a record is there that was never appended in that place.
    Invented,
    /// P4: damage changed an answer and was not reported.
    Silent,
    /// Anything else that is promised.
    Broken,
}

/// One broken promise in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) kind: Kind,
    pub(crate) words: String,
}

impl Verdict {
    pub(crate) fn new(kind: Kind, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { kind, words }
    }

    pub(crate) fn broken(words: impl Into<String>) -> Self {
        Self::new(Kind::Broken, words)
    }

    pub(crate) fn lost(words: impl Into<String>) -> Self {
        Self::new(Kind::Lost, words)
    }

    pub(crate) fn invented(words: impl Into<String>) -> Self {
        Self::new(Kind::Invented, words)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_well_only_when_nothing_broke_and_every_canary_was_caught() {
        let well = Report { canaries: 3, canaries_caught: 3, ..Report::default() };
        assert!(well.is_well());
        let mut missed = well.clone();
        missed.canaries_caught = 2;
        assert!(!missed.is_well());
        for verdict in [Verdict::lost(""), Verdict::invented(""), Verdict::broken("")] {
            let mut failed = well.clone();
            failed.fail(&verdict, "here");
            assert!(!failed.is_well(), "{verdict}");
        }
    }

    #[test]
    fn json_has_every_figure_and_quotes_words() {
        let mut report = Report::default();
        report.fail(&Verdict::lost("a \"word\""), "w:1:2");
        let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
        let keys = [
            "images",
            "acknowledged_lost",
            "invented",
            "bit_flips",
            "silent",
            "io_faults",
            "kills",
            "canaries",
            "canaries_caught",
            "seconds",
        ];
        for key in keys {
            assert!(json[key].is_number(), "{key}");
        }
        assert_eq!(json["acknowledged_lost"], 1);
        assert_eq!(json["failures"][0], "w:1:2: Lost: a \"word\"");
    }
}
