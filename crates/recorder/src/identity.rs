//! The identity of an agent: its sessions and the ids of its loops.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bough_platform::{Clock, Entropy, Platform};

use crate::model::{LoopConfigSnapshot, RecordedSession, SessionFormation};
use crate::open_enums::ThinkingLevel;
use crate::time::Timestamp;

/// An agent's identity: its current session, and the id of its next loop.
#[derive(Debug)]
pub struct AgentHandle {
    agent_id: String,
    session_id: String,
    /// The highest number given to a loop, for each configuration.
    loop_numbers: HashMap<String, u64>,
    /// The time of the last activity; none in a new session.
    last_activity: Option<Timestamp>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// A change from one session to the next because the agent was idle for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The new session.
    pub session_id: String,
    /// The session before it.
    pub previous_session_id: String,
    /// The longest idle time.
    pub threshold: Duration,
    /// When.
    pub at: Timestamp,
}

impl Rotation {
    /// The formation of the new session, for [`crate::SessionRecorder::announce_session`].
    #[must_use]
    pub fn formation(&self) -> SessionFormation {
        SessionFormation::InactivityTimeout {
            threshold_secs: self.threshold.as_secs(),
            previous_session_id: Some(self.previous_session_id.clone()),
            timestamp: self.at,
        }
    }
}

impl AgentHandle {
    /// An agent in a new session.
    pub fn new(agent_id: impl Into<String>, platform: &Platform) -> io::Result<Self> {
        Ok(Self {
            agent_id: agent_id.into(),
            session_id: new_uuid(platform.entropy.as_ref())?,
            loop_numbers: HashMap::new(),
            last_activity: None,
            clock: Arc::clone(&platform.clock),
            entropy: Arc::clone(&platform.entropy),
        })
    }

    /// An agent that continues a session; its loops get ids that the session does not have.
    #[must_use]
    pub fn resume(session: &RecordedSession, platform: &Platform) -> Self {
        let mut handle = Self {
            agent_id: session.agent_id.clone(),
            session_id: session.session_id.clone(),
            loop_numbers: HashMap::new(),
            last_activity: None,
            clock: Arc::clone(&platform.clock),
            entropy: Arc::clone(&platform.entropy),
        };
        for record in &session.loops {
            let ended_at = record.ended_at.unwrap_or(record.started_at);
            handle.last_activity = handle.last_activity.max(Some(ended_at));
            let rest = record.loop_id.strip_prefix(&session.session_id);
            let numbered =
                rest.and_then(|rest| rest.strip_prefix('.')).and_then(|rest| rest.rsplit_once('.'));
            if let Some((segment, number)) = numbered
                && let Ok(number) = number.parse::<u64>()
            {
                let highest = handle.loop_numbers.entry(segment.to_owned()).or_default();
                *highest = number.max(*highest);
            }
        }
        handle
    }

    /// The agent.
    #[must_use]
    pub fn agent_id(&self) -> &str {
        &self.agent_id
    }

    /// The session that its next loop belongs to.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Continues in a new session, and returns its id.
    pub fn new_session(&mut self) -> io::Result<String> {
        self.session_id = new_uuid(self.entropy.as_ref())?;
        self.loop_numbers.clear();
        self.last_activity = None;
        Ok(self.session_id.clone())
    }

    /// Continues in a new session if the agent was idle for longer than `idle`. A session without any activity is not
    /// left.
    pub fn check_and_rotate(&mut self, idle: Duration) -> io::Result<Option<Rotation>> {
        let now = Timestamp::from_unix_ms(self.clock.now_ms());
        let is_idle = self.last_activity.is_some_and(|last| now.since(last) > idle);
        if !is_idle {
            return Ok(None);
        }
        let previous_session_id = self.session_id.clone();
        Ok(Some(Rotation {
            session_id: self.new_session()?,
            previous_session_id,
            threshold: idle,
            at: now,
        }))
    }

    /// Notes activity: a loop starts, continues or ends, a message is sent or received.
    pub fn touch(&mut self) {
        self.last_activity = Some(Timestamp::from_unix_ms(self.clock.now_ms()));
    }

    /// The id of the next loop with a configuration: `{session_id}.{segment}.{number}`. No id is given twice, also not
    /// to loops that run in parallel.
    pub fn next_loop_id(&mut self, segment: &str) -> String {
        self.touch();
        let number = self.loop_numbers.entry(segment.to_owned()).or_default();
        *number += 1;
        format!("{}.{segment}.{number}", self.session_id)
    }
}

/// The middle part of loop ids for a configuration: its name, else its provider and model.
#[must_use]
pub fn config_segment(config: &LoopConfigSnapshot) -> String {
    if let Some(config_id) = &config.config_id {
        return config_id.clone();
    }
    let plain = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '-' };
    let model: String = config.model.chars().map(plain).collect();
    let thinks = config.thinking_level.as_ref().is_some_and(|level| *level != ThinkingLevel::Off);
    let thinking = if thinks { ".thinking" } else { "" };
    format!("{}.{model}{thinking}", config.provider)
}

/// A random UUID (version 4).
fn new_uuid(entropy: &dyn Entropy) -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    entropy.fill(&mut bytes)?;
    let random = u128::from_be_bytes(bytes);
    let versioned = (random & !(0xf << 76)) | (0x4 << 76);
    let id = (versioned & !(0x3 << 62)) | (0x2 << 62);
    let hex = format!("{id:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok(format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)))
}

#[cfg(test)]
mod tests {
    use bough_testkit::{SimClock, SimEntropy};

    use super::*;
    use crate::model::{LoopRecord, LoopStatus};

    fn platform() -> (Platform, Arc<SimClock>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SimClock::default());
        let mut platform = Platform::system(folder.path()).unwrap();
        platform.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        platform.entropy = Arc::new(SimEntropy::new(1));
        (platform, clock, folder)
    }

    /// Whether a text has the form of a random UUID.
    fn is_uuid(text: &str) -> bool {
        let form = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
        let fits = |(found, form): (char, char)| match form {
            'x' => found.is_ascii_hexdigit(),
            'y' => "89ab".contains(found),
            form => found == form,
        };
        text.len() == form.len() && text.chars().zip(form.chars()).all(fits)
    }

    #[test]
    fn ids_are_random_uuids_and_loops_are_numbered() {
        let (platform, ..) = platform();
        let mut agent = AgentHandle::new("a", &platform).unwrap();
        let first = agent.session_id().to_owned();
        assert!(is_uuid(&first), "{first}");
        assert_eq!(agent.next_loop_id("cfg"), format!("{first}.cfg.1"));
        assert_eq!(agent.next_loop_id("cfg"), format!("{first}.cfg.2"));
        assert_eq!(agent.next_loop_id("other"), format!("{first}.other.1"));
        let next = agent.new_session().unwrap();
        assert!(is_uuid(&next) && next != first, "{next}");
        assert_eq!(agent.next_loop_id("cfg"), format!("{next}.cfg.1"));
    }

    #[test]
    fn an_idle_agent_goes_on_in_a_new_session() {
        let (platform, clock, _folder) = platform();
        let mut agent = AgentHandle::new("a", &platform).unwrap();
        let idle = Duration::from_secs(60);
        let rotates_at = |agent: &mut AgentHandle, ms: i64| {
            clock.jump_to(ms);
            agent.check_and_rotate(idle).unwrap()
        };
        assert_eq!(rotates_at(&mut agent, 1_000_000), None, "nothing has happened yet");
        agent.next_loop_id("cfg");
        assert_eq!(rotates_at(&mut agent, 1_050_000), None);
        // The loop ends: time counts from here, not from its start.
        agent.touch();
        assert_eq!(rotates_at(&mut agent, 1_110_000), None, "exactly as long as allowed");
        let before = agent.session_id().to_owned();
        let rotation = rotates_at(&mut agent, 1_110_001).unwrap();
        assert_eq!(rotation.previous_session_id, before);
        assert_eq!(rotation.session_id, agent.session_id());
        assert_eq!(
            rotation.formation(),
            SessionFormation::InactivityTimeout {
                threshold_secs: 60,
                previous_session_id: Some(before),
                timestamp: Timestamp::from_unix_ms(1_110_001),
            }
        );
        assert_eq!(rotates_at(&mut agent, 9_999_999), None, "the new session is unused");
    }

    #[test]
    fn a_resumed_agent_gives_no_id_twice() {
        let (platform, ..) = platform();
        let mut session = RecordedSession::explicit("s", "a", Timestamp::default());
        for id in ["s.cfg.7", "s.cfg.3", "s.p.model.2", "loop-x"] {
            let record = LoopRecord::new(id, "s", "a", LoopStatus::Completed, Timestamp::default());
            session.loops.add(record).unwrap();
        }
        let mut agent = AgentHandle::resume(&session, &platform);
        assert_eq!(agent.next_loop_id("cfg"), "s.cfg.8");
        assert_eq!(agent.next_loop_id("p.model"), "s.p.model.3");
    }

    #[test]
    fn a_configuration_has_a_name() {
        let mut config = LoopConfigSnapshot {
            model: "claude opus/4.5".to_owned(),
            provider: "anthropic".to_owned(),
            thinking_level: Some(ThinkingLevel::High),
            ..LoopConfigSnapshot::default()
        };
        assert_eq!(config_segment(&config), "anthropic.claude-opus-4-5.thinking");
        config.thinking_level = Some(ThinkingLevel::Off);
        assert_eq!(config_segment(&config), "anthropic.claude-opus-4-5");
        config.config_id = Some("fast".to_owned());
        assert_eq!(config_segment(&config), "fast");
    }
}
