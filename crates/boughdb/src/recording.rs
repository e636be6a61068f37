//! Recording: agent events in, sessions of loops out.
//!
//! A [`RecordedSession`] groups the loops of one agent session: which loop goes on from which, which ran side by side
//! and which of them was chosen, which sub-agents were spawned, the messages and the cost of each turn. [`crate::Recorder`] makes
//! it from the events of an agent and stores it while they arrive; [`SessionRecorder`] makes it in memory.
//!
//! Messages go in and come out as everywhere in this crate: [`AgentMessage`](crate::AgentMessage), made by [`user`](crate::user) and
//! [`assistant`](crate::assistant), with one [`Usage`](crate::Usage).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), boughdb::Error> {
//! use boughdb::recording::{AgentEnd, AgentStart, Timestamp};
//! use boughdb::{Bough, Usage, assistant, user};
//!
//! let bough = Bough::in_memory()?;
//! let recorder = bough.recorder()?;
//! let now = Timestamp::now();
//! recorder.record(AgentStart::new("agent", "s", "s.main.1", now)).await?;
//! let usage = Usage { input: Some(5), output: Some(2), cost_usd: Some(0.01), ..Usage::default() };
//! let messages = [user("Hello"), assistant("local", "small", "Hi!").with_usage(usage)];
//! recorder.record(AgentEnd::new("s.main.1", messages, now)).await?;
//! recorder.finish().await?;
//!
//! let recorded = bough.recorded("s").await?.expect("it has loops");
//! let back: Vec<_> = recorded.loops[0].canonical_messages().collect();
//! assert_eq!(back[1].text(), "Hi!");
//! assert_eq!(back[1].usage().and_then(|usage| usage.cost_usd), Some(0.01));
//! assert_eq!(recorded.total_usage().input, Some(5));
//! # Ok(())
//! # }
//! ```
//!
//! All constructors of events take these types. Events, loops and turns hold each message as a [`RecordedMessage`]: the message
//! ([`RecordedMessage::message`]), the turn that made it, and the JSON that it came as, with members that this version does not know, so
//! that what was recorded is written byte for byte. `canonical_messages` of a loop, a turn and a context gives the messages alone. A
//! record has every number of a usage, and [`total_tokens`] gives the total that the provider counted:
//!
//! ```
//! use boughdb::recording::{ParallelLoopEnd, Timestamp, TurnEnd, total_tokens};
//! use boughdb::{Usage, assistant, function_result};
//!
//! let now = Timestamp::now();
//! let answer = assistant("local", "small", "I look.");
//! let usage = Usage { input: Some(5), output: Some(2), ..Usage::default() };
//! let end = TurnEnd::new("s.main.1", answer, now)
//!     .with_tool_results([function_result("call-1", "search", "Found.")])
//!     .with_usage(usage.clone());
//! assert_eq!(end.tool_results.len(), 1);
//! assert_eq!(end.message.message().map(|message| message.text()).as_deref(), Some("I look."));
//! assert_eq!((end.usage.input, total_tokens(&end.usage)), (Some(5), 7));
//! let choice = ParallelLoopEnd::new("s", "s.main.1", 0, now).with_usage(usage);
//! assert_eq!(choice.evaluation_usage.output, Some(2));
//! ```
//!
//! Loops are identified and chained by their ids:
//!
//! ```
//! use boughdb::recording::{AgentEnd, AgentStart, SessionRecorder, SessionRecorderConfig, Timestamp};
//!
//! let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
//! let now = Timestamp::now();
//! recorder.on_event(AgentStart::new("agent", "s", "s.main.1", now).into());
//! recorder.on_event(AgentEnd::without_messages("s.main.1", now).into());
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
