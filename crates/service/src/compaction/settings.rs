use super::ModelWindows;

/// When to compact, and how much to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether automatic compaction is enabled.
    pub enabled: bool,
    /// Tokens that must stay free in the model's window.
    pub reserve_tokens: u64,
    /// How much of the newest conversation is kept unchanged.
    pub keep_recent_tokens: u64,
    /// The context windows of models.
    pub windows: ModelWindows,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            windows: ModelWindows::default(),
        }
    }
}

impl CompactionSettings {
    /// Whether a context of `tokens` is too much for a window. Never when no window is known.
    #[must_use]
    pub fn is_due(&self, tokens: u64, window: Option<u64>) -> bool {
        let limit = window.map(|window| window.saturating_sub(self.reserve_tokens));
        self.enabled && limit.is_some_and(|limit| tokens > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_only_over_a_known_window_less_the_reserve() {
        let settings = CompactionSettings { reserve_tokens: 10, ..CompactionSettings::default() };
        assert!(!settings.is_due(90, Some(100)));
        assert!(settings.is_due(91, Some(100)));
        assert!(!settings.is_due(1_000_000, None));
        assert!(settings.is_due(1, Some(5)), "a window smaller than the reserve");
        assert!(!CompactionSettings { enabled: false, ..settings }.is_due(91, Some(100)));
    }
}
