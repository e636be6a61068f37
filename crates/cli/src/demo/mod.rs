//! Sessions of an agent at work, for people who have no sessions yet.
//!
//! The content is data: [`story`] holds sessions that a client writes message by message, [`agent_run`] one for a
//! recorder. The [`Player`] writes both through the functions that every client calls.

mod agent_run;
mod events;
mod play;
mod rounds;
mod story;

use crate::app::App;
use crate::backend::Backend;
use crate::command_error::{CommandError, CommandResult};
use crate::limits::{DEMO_REST, DEMO_ROUNDS_MAX};

use agent_run::AgentRun;
use play::{Player, Speed};
use rounds::Rounds;
use story::Story;

/// The demo, ready to be written somewhere.
pub(crate) struct Demo {
    story: Story,
    run: AgentRun,
    nightly: AgentRun,
}

impl Demo {
    pub(crate) fn read() -> CommandResult<Self> {
        let story = Story::read().map_err(CommandError::failed)?;
        let run = AgentRun::read().map_err(CommandError::failed)?;
        let nightly = AgentRun::read_nightly().map_err(CommandError::failed)?;
        Ok(Self { story, run, nightly })
    }

    /// Writes the sessions of the past; returns their ids.
    pub(crate) async fn fill(&self, app: &App, backend: &Backend) -> CommandResult<Vec<String>> {
        let player = Player::new(app, backend);
        let mut sessions = player.record_past(&self.nightly).await?;
        sessions.extend(player.fill(&self.story).await?);
        sessions.extend(player.record_past(&self.run).await?);
        Ok(sessions)
    }

    /// Writes sessions live, as an agent would; returns their ids.
    pub(crate) async fn play_live(
        self,
        app: &App,
        backend: &Backend,
    ) -> CommandResult<Vec<String>> {
        let player = Player::new(app, backend);
        Rounds::new(&player, self.story).play_next(Speed::USUAL).await
    }

    /// Writes sessions live again and again, so that there is always something to watch.
    pub(crate) async fn play_rounds(self, app: &App, backend: &Backend) -> CommandResult<()> {
        let player = Player::new(app, backend);
        let mut rounds = Rounds::new(&player, self.story);
        for _ in 0..DEMO_ROUNDS_MAX {
            rounds.play_next(Speed::USUAL).await?;
            tokio::time::sleep(DEMO_REST).await;
        }
        Ok(())
    }
}
