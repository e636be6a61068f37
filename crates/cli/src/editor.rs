//! Text in the person's own editor.

use std::process::Command;

use bough_platform::Entropy;

use crate::command_error::{CommandError, CommandResult};
use crate::files::TempFile;

/// Opens a text in `$VISUAL` or `$EDITOR` (`vi` without either) and returns the saved text.
///
/// If the person ends the editor without saving, or saves only spaces, the edit is cancelled.
pub(crate) fn edit(text: &str, entropy: &dyn Entropy) -> CommandResult<String> {
    let mut random = [0; 8];
    entropy.fill(&mut random)?;
    let file = TempFile::new(random, ".md", text)?;
    let before = file.changed_at()?;
    let command = chosen();
    let (program, arguments) = command.split_first().ok_or_else(|| no_editor("it is empty"))?;
    let status = Command::new(program).args(arguments).arg(file.path()).status();
    let status = status.map_err(|error| no_editor(&format!("{program}: {error}")))?;
    if !status.success() {
        return Err(no_editor(&format!("{program} ended with {status}")));
    }
    let edited = file.read()?;
    let is_saved = file.changed_at()? != before || edited != text;
    if !is_saved || edited.trim().is_empty() {
        return Err(CommandError::cancelled());
    }
    Ok(edited)
}

/// The editor and its arguments.
fn chosen() -> Vec<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let command = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    words(&command)
}

fn no_editor(reason: &str) -> CommandError {
    CommandError::failed(format!("the editor could not be used: {reason}")).hint(
        "set EDITOR to a program that edits a file and waits, such as `nano` or `code --wait`",
    )
}

/// The words of a command line: separated by spaces, held together by quotes.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut begun = false;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                begun = true;
            }
            (None, _) if character.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
            }
            _ => {
                word.push(character);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_command_line() {
        assert_eq!(words("code --wait"), ["code", "--wait"]);
        assert_eq!(words(r#" "/opt/my editor" -n 'a b' "" "#), ["/opt/my editor", "-n", "a b", ""]);
        assert_eq!(words("  "), Vec::<String>::new());
    }
}
