//! Sessions of an agent at work, for people who have no sessions yet.
//!
//! The content is data: [`story`] holds sessions that a client writes message by message, [`agent_run`] one for a
//! recorder. The [`Player`] writes both through the functions that every client calls.

mod agent_run;
mod events;
mod play;
mod story;

use crate::app::App;
use crate::backend::Backend;
use crate::command_error::{CommandError, CommandResult};

use agent_run::AgentRun;
use play::{Player, Speed};
use story::Story;

/// The demo, ready to be written somewhere.
pub(crate) struct Demo {
    story: Story,
    run: AgentRun,
}

impl Demo {
    pub(crate) fn read() -> CommandResult<Self> {
        let story = Story::read().map_err(CommandError::failed)?;
        let run = AgentRun::read().map_err(CommandError::failed)?;
        Ok(Self { story, run })
    }

    /// Writes the sessions of the past; returns their ids.
    pub(crate) async fn fill(&self, app: &App, backend: &Backend) -> CommandResult<Vec<String>> {
        let player = Player::new(app, backend);
        let mut sessions = player.fill(&self.story).await?;
        sessions.extend(player.record_past(&self.run).await?);
        Ok(sessions)
    }

    /// Writes sessions live, as an agent would; returns their ids.
    pub(crate) async fn play_live(
        &self,
        app: &App,
        backend: &Backend,
    ) -> CommandResult<Vec<String>> {
        let player = Player::new(app, backend);
        let (streamed, recorded) = tokio::join!(
            player.stream_live(&self.story.live, Speed::USUAL),
            player.record_live(&self.run, Speed::USUAL),
        );
        let mut sessions = recorded?;
        sessions.push(streamed?);
        Ok(sessions)
    }
}
