//! The loop: events in, effects out, a frame after each round.

use std::sync::Arc;
use std::time::Duration;

use bough_platform::{Clock, Entropy};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::effects::{EditedEntry, EffectRunner, needs_editor, run_effect};
use super::event::{Event, Size};
use super::stack::{Effect, Outcome, ScreenStack};
use super::terminal::{Keys, TerminalGuard};
use super::theme::Theme;
use crate::app::App;
use crate::backend::Backend;
use crate::command_error::CommandResult;
use crate::editor;
use crate::summarise::Configured;

/// The options of the screens.
pub(crate) struct ScreenOptions {
    pub(crate) backend: Backend,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) configured: Configured,
    pub(crate) color: bool,
}

impl ScreenOptions {
    /// The context of a command.
    pub(crate) fn new(app: &App, backend: &Backend, configured: Configured) -> Self {
        Self {
            backend: backend.clone(),
            clock: app.clock.clone(),
            entropy: app.entropy.clone(),
            configured,
            color: app.output.screens_have_color(),
        }
    }
}

/// How often ages are updated, and the picker checks for changed sessions.
const TICK: Duration = Duration::from_secs(2);

/// The size of the window; a default if the terminal does not report it.
pub(crate) fn window_size() -> Size {
    let (columns, rows) = ratatui::crossterm::terminal::size().unwrap_or((80, 24));
    Size { columns, rows }
}

/// Shows screens until there is an outcome. `make` is given the size of the window and the time.
pub(crate) async fn run(
    options: ScreenOptions,
    make: impl FnOnce(Size, i64) -> (ScreenStack, Vec<Effect>),
) -> CommandResult<Outcome> {
    let (sender, receiver) = unbounded_channel();
    let taken = TerminalGuard::take()?;
    let keys = Keys::start(sender.clone());
    let (stack, effects) = make(window_size(), options.clock.now_ms());
    let runner = EffectRunner {
        backend: options.backend.clone(),
        clock: options.clock.clone(),
        configured: Arc::new(options.configured.clone()),
    };
    let mut shown = ScreenLoop { taken, keys, stack, sender, runner, options };
    shown.start(effects).await?;
    shown.run(receiver).await
}

struct ScreenLoop {
    taken: TerminalGuard,
    keys: Keys,
    stack: ScreenStack,
    sender: UnboundedSender<Event>,
    runner: EffectRunner,
    options: ScreenOptions,
}

impl ScreenLoop {
    async fn run(mut self, mut events: UnboundedReceiver<Event>) -> CommandResult<Outcome> {
        let theme = Theme { color: self.options.color };
        let mut ticks = tokio::time::interval(TICK);
        loop {
            self.taken.canvas.draw(|frame| self.stack.view(frame, theme))?;
            let event = tokio::select! {
                event = events.recv() => event.unwrap_or(Event::Closed),
                _ = ticks.tick() => Event::Tick { now_ms: self.options.clock.now_ms() },
            };
            self.handle(event).await?;
            // Handle all waiting events before the next frame is drawn.
            while let Ok(event) = events.try_recv() {
                self.handle(event).await?;
            }
            if let Some(outcome) = self.stack.outcome() {
                return Ok(outcome.clone());
            }
        }
    }

    async fn handle(&mut self, event: Event) -> CommandResult<()> {
        if self.stack.outcome().is_some() {
            return Ok(());
        }
        let effects = self.stack.update(event);
        self.start(effects).await
    }

    async fn start(&mut self, effects: Vec<Effect>) -> CommandResult<()> {
        for effect in effects {
            let edited = match needs_editor(&effect) {
                Some(entry) => Some(self.edit(entry).await?),
                None => None,
            };
            let (runner, sender) = (self.runner.clone(), self.sender.clone());
            tokio::spawn(async move {
                let answer = run_effect(&runner, effect, edited).await;
                // If the screen is closed by now, the answer is not needed.
                drop(sender.send(Event::Answer(answer)));
            });
        }
        Ok(())
    }

    /// Opens the person's editor on the terminal. The text is read first.
    async fn edit(&mut self, entry: EditedEntry) -> CommandResult<Result<String, String>> {
        let text = match self.runner.text_of(&entry).await {
            Ok(text) => text,
            Err(error) => return Ok(Err(error)),
        };
        let entropy = self.options.entropy.clone();
        let taken = &mut self.taken;
        let edited = self.keys.pause(|| taken.lend(|| editor::edit(&text, entropy.as_ref())))?;
        Ok(edited.map_err(|error| error.to_string()))
    }
}
