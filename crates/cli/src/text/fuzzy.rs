//! Fuzzy search: every word must be found as letters in order; letters that are close together and at the beginnings of
//! words score higher. A phrase in quotes must be found as it is.

/// How well something matched; larger is better.
pub(crate) type Score = i64;

/// What a person typed to search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Fuzzy(Vec<char>),
    Phrase(String),
}

/// A letter that follows the one before it directly.
const ADJACENT: Score = 8;
/// A letter at the beginning of a word.
const WORD_START: Score = 6;
/// A letter anywhere.
const LETTER: Score = 1;
/// The whole word found in one piece.
const WHOLE: Score = 24;
/// Letters between the first and the last found one cost one each, up to this.
const GAP_MAX: Score = 16;
/// Letters that are further apart than this many times their number do not match.
const SPREAD_MAX: usize = 4;

impl Query {
    /// Reads what was typed. A quote that is not closed reaches to the end.
    pub(crate) fn parse(text: &str) -> Self {
        let mut words = Vec::new();
        for (at, part) in text.to_lowercase().split('"').enumerate() {
            if at % 2 == 1 {
                words.extend(Some(part.trim()).filter(|p| !p.is_empty()).map(phrase));
            } else {
                words.extend(
                    part.split_whitespace().map(|word| Word::Fuzzy(word.chars().collect())),
                );
            }
        }
        Self { words }
    }

    /// How well a text matches; `None` when some word is not in it. Each word is looked for in one line at a
    /// time, so that letters of unrelated fields do not make one up. `text` must be in small letters.
    pub(crate) fn score(&self, text: &str) -> Option<Score> {
        self.words.iter().try_fold(0, |sum, word| {
            let best = text.lines().filter_map(|line| word.score(line)).max()?;
            Some(sum + best)
        })
    }
}

fn phrase(text: &str) -> Word {
    Word::Phrase(text.to_owned())
}

impl Word {
    fn score(&self, text: &str) -> Option<Score> {
        match self {
            Self::Phrase(phrase) => text
                .contains(phrase.as_str())
                .then(|| WHOLE + i64::try_from(phrase.len()).unwrap_or(0) * (LETTER + ADJACENT)),
            Self::Fuzzy(letters) => letters_score(letters, text),
        }
    }
}

/// The best score over the places where the word may start. Short texts and words: a simple scan is enough.
fn letters_score(letters: &[char], text: &str) -> Option<Score> {
    let text: Vec<char> = text.chars().collect();
    let first = letters.first()?;
    let starts = text.iter().enumerate().filter(|(_, letter)| *letter == first);
    starts.filter_map(|(at, _)| score_from(letters, &text, at)).max()
}

fn score_from(letters: &[char], text: &[char], start: usize) -> Option<Score> {
    let mut score = 0;
    let mut last = None;
    let mut at = start;
    for letter in letters {
        at += text.get(at..)?.iter().position(|found| found == letter)?;
        score += LETTER + bonus(text, last, at);
        last = Some(at);
        at += 1;
    }
    let span = at - start;
    if span > letters.len() * SPREAD_MAX {
        return None;
    }
    let gap = i64::try_from(span - letters.len()).unwrap_or(i64::MAX);
    let whole = if gap == 0 { WHOLE } else { 0 };
    Some(score + whole - gap.min(GAP_MAX))
}

fn bonus(text: &[char], last: Option<usize>, at: usize) -> Score {
    let before = at.checked_sub(1);
    if last.is_some() && last == before {
        return ADJACENT;
    }
    let at_start = before.and_then(|b| text.get(b)).is_none_or(|c| !c.is_alphanumeric());
    if at_start { WORD_START } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(query: &str, text: &str) -> Option<Score> {
        Query::parse(query).score(&text.to_lowercase())
    }

    #[test]
    fn letters_in_order_match() {
        assert!(score("fxprs", "Fix the parser").is_some());
        assert!(score("parser fix", "Fix the parser").is_some(), "words in any order");
        assert!(score("rsap", "Fix the parser").is_none());
        assert!(score("", "anything").is_some());
        assert!(score("fixparser", "fix\nparser").is_none(), "not across fields");
        assert!(score("fp", "far away is a pea").is_none(), "not across half the text");
        assert!(score("世", "你好世界").is_some());
    }

    #[test]
    fn phrases_match_as_they_are() {
        assert!(score("\"the parser\"", "Fix the parser").is_some());
        assert!(score("\"fix parser\"", "Fix the parser").is_none());
        assert!(
            score("\"the par", "Fix the parser").is_some(),
            "a quote that is still being typed"
        );
    }

    #[test]
    fn closer_is_better() {
        let better = |query: &str, more: &str, less: &str| {
            assert!(score(query, more) > score(query, less), "{query}: {more:?} over {less:?}");
        };
        better("parser", "the parser", "pair of search errors");
        better("fp", "fix parser", "a flip");
        better("date", "update date", "drained at eve");
    }
}
