use super::agent_run::AgentRun;
use super::play::{Player, Speed};
use super::story::Story;
use crate::command_error::{CommandError, CommandResult};

/// An agent at work again and again. Each round replaces sessions of an earlier one, so that the list stays short.
pub(crate) struct Rounds<'a> {
    player: &'a Player<'a>,
    story: Story,
    round: usize,
    /// The sessions of the last round that streamed one.
    streamed: Vec<String>,
    /// The sessions of the last round that recorded some.
    recorded: Vec<String>,
}

impl<'a> Rounds<'a> {
    pub(crate) const fn new(player: &'a Player<'a>, story: Story) -> Self {
        Self { player, story, round: 0, streamed: Vec::new(), recorded: Vec::new() }
    }

    /// Plays both kinds first, then one of them by turns. Returns the new sessions.
    pub(crate) async fn play_next(&mut self, speed: Speed) -> CommandResult<Vec<String>> {
        let round = self.round;
        self.round += 1;
        let (streams, records) = (round == 0 || !round.is_multiple_of(2), round.is_multiple_of(2));
        if streams {
            self.player.remove(&std::mem::take(&mut self.streamed)).await?;
        }
        if records {
            self.player.remove(&std::mem::take(&mut self.recorded)).await?;
        }
        // A kind plays in every second round, so each of them counts for itself.
        let live = self.story.live(round.div_ceil(2)).map_err(CommandError::failed)?;
        let run = AgentRun::read_live(round / 2).map_err(CommandError::failed)?;
        let (streamed, recorded) = tokio::join!(
            async {
                if streams { Some(self.player.stream_live(&live, speed).await) } else { None }
            },
            async { if records { Some(self.player.record_live(&run, speed).await) } else { None } },
        );
        let mut new = Vec::new();
        if let Some(recorded) = recorded {
            self.recorded = recorded?;
            new.extend(self.recorded.clone());
        }
        if let Some(streamed) = streamed {
            self.streamed = vec![streamed?];
            new.extend(self.streamed.clone());
        }
        Ok(new)
    }
}
