//! Recording: agent events in, sessions of loops out.
//!
//! A [`RecordedSession`] groups the loops of one agent session: which loop goes on from which, which ran side by side
//! and which of them was chosen, which sub-agents were spawned, what each turn said and cost. [`crate::Recorder`] makes
//! it from the events of an agent and stores it while they arrive; [`SessionRecorder`] makes it in memory.
//!
//! Events carry messages as phi-core has them ([`PhiMessage`]). One of this crate's own ([`crate::AgentMessage`], [`crate::user`],
//! [`crate::assistant`]) becomes one with `into()`, and [`PhiMessage::canonical`] is the way back:
//!
//! ```
//! use boughdb::recording::{AgentEnd, PhiMessage, Timestamp};
//! use boughdb::{assistant, user};
//!
//! let said = vec![user("Hello").into(), assistant("local", "small", "Hi!").into()];
//! let end = AgentEnd::new("s.main.1", said, Timestamp::now());
//! assert_eq!(end.messages[0].text(), "Hello");
//! assert_eq!(end.messages[1].canonical().map(|message| message.text()), Some("Hi!".to_owned()));
//! # let _: &PhiMessage = &end.messages[0];
//! ```
//!
//! ```
//! use boughdb::recording::{AgentEnd, AgentStart, SessionRecorder, SessionRecorderConfig, Timestamp};
//!
//! let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
//! let now = Timestamp::now();
//! recorder.on_event(AgentStart::new("agent", "s", "s.main.1", now).into());
//! recorder.on_event(AgentEnd::new("s.main.1", vec![], now).into());
//! recorder.on_event(AgentStart::new("agent", "s", "s.main.2", now).continuing("s.main.1").into());
//! recorder.flush();
//!
//! let session = recorder.drain_completed().remove(0);
//! assert_eq!(session.loop_chain_to("s.main.2"), ["s.main.1", "s.main.2"]);
//! for one in &session.loops {
//!     println!("{}: {:?}", one.loop_id, one.status);
//! }
//! ```
//!
//! Where to look:
//!
//! | for | use |
//! |---|---|
//! | events | [`AgentEvent`] and the types in its variants, each with constructors |
//! | questions to a session | the methods of [`RecordedSession`]: `root_loops`, `children_of`, `parallel_siblings`, `loop_chain_to`, `total_usage` |
//! | sub-agents over several sessions | [`SpawnGraph`], [`usage_with_sub_agents`] |
//! | what an agent should read next | [`build_context_from_session`], [`compact_session_loops`] |
//! | what a user may say | [`InputFilters`] |
//! | session and loop ids, inactivity | [`AgentHandle`] |
//! | session files of phi-core | [`save_session`], [`load_session`], [`FileSystemSessionStore`] |
//! | playing a session back | [`Replay`] |

pub use bough_recorder::*;
