//! tantivy, fed with the terms of Bough's tokenizer, with positions, and the number of the entry beside them.

use std::path::Path;
use std::time::Instant;

use bough_search::{TokenKind, tokenize};
use tantivy::collector::TopDocs;
use tantivy::query::{PhraseQuery, Query, TermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{Index, IndexReader, TantivyDocument, Term};

use crate::{Made, Outcome, corpus, entries, processor_seconds};

/// Entries between two commits: as many as Bough takes up in a round.
const BATCH: usize = 4_000;
/// What its writer may hold in memory before it writes a segment.
const WRITER_BYTES: usize = 128 * 1024 * 1024;
const TOKENIZER: &str = "bough";

/// Bough's tokenizer.
#[derive(Clone, Default)]
struct OurTokenizer;

struct OurTokens {
    tokens: std::vec::IntoIter<Token>,
    current: Token,
}

impl Tokenizer for OurTokenizer {
    type TokenStream<'a> = OurTokens;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> OurTokens {
        let mut tokens = Vec::new();
        let mut position = 0;
        tokenize(text, |token| {
            // A whole word shares the place of its last part.
            if token.kind != TokenKind::Whole {
                position += 1;
            }
            tokens.push(Token {
                offset_from: token.range.start,
                offset_to: token.range.end,
                position,
                text: token.term.to_owned(),
                position_length: 1,
            });
        });
        OurTokens { tokens: tokens.into_iter(), current: Token::default() }
    }
}

impl TokenStream for OurTokens {
    fn advance(&mut self) -> bool {
        match self.tokens.next() {
            Some(token) => {
                self.current = token;
                true
            }
            None => false,
        }
    }

    fn token(&self) -> &Token {
        &self.current
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.current
    }
}

fn schema() -> (Schema, Field, Field) {
    let mut schema = Schema::builder();
    let terms = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = schema.add_text_field("text", TextOptions::default().set_indexing_options(terms));
    let number = schema.add_u64_field("number", FAST | INDEXED);
    (schema.build(), text, number)
}

pub(crate) fn made(folder: &Path) -> Outcome<Made> {
    if let Some(made) = Made::kept(folder, "tantivy") {
        return Ok(made);
    }
    let place = folder.join("tantivy");
    std::fs::create_dir_all(&place)?;
    let (schema, text, number) = schema();
    let index = Index::create_in_dir(&place, schema)?;
    index.tokenizers().register(TOKENIZER, OurTokenizer);
    let mut writer = index.writer_with_num_threads(1, WRITER_BYTES)?;
    let count = entries()?;
    let (mut processor, mut seconds, mut bytes) = (0.0, 0.0, 0);
    for first in (0..count).step_by(BATCH) {
        let texts: Vec<String> =
            (first..count.min(first + BATCH)).map(|n| corpus::entry(n, count).text).collect();
        let (began, before) = (Instant::now(), processor_seconds()?);
        for (at, words) in (first..).zip(texts) {
            bytes += words.len();
            let mut document = TantivyDocument::default();
            document.add_text(text, &words);
            document.add_u64(number, u64::try_from(at)?);
            writer.add_document(document)?;
        }
        writer.commit()?;
        processor += processor_seconds()? - before;
        seconds += began.elapsed().as_secs_f64();
    }
    let (began, before) = (Instant::now(), processor_seconds()?);
    writer.wait_merging_threads()?;
    processor += processor_seconds()? - before;
    seconds += began.elapsed().as_secs_f64();
    let made = Made {
        text_bytes: crate::measure::as_f64(bytes),
        index_bytes: crate::bytes_of(&place, "")?,
        processor_seconds: processor,
        seconds,
    };
    made.keep(folder, "tantivy")?;
    Ok(made)
}

/// A reader of what was made.
pub(crate) struct Searcher {
    reader: IndexReader,
    text: Field,
}

impl Searcher {
    pub(crate) fn open(folder: &Path) -> Outcome<Self> {
        let index = Index::open_in_dir(folder.join("tantivy"))?;
        let text = index.schema().get_field("text")?;
        Ok(Self { reader: index.reader()?, text })
    }

    /// Milliseconds for the best `limit` of all that fit. It has no text, so there are no snippets.
    pub(crate) fn first_documents(&self, pattern: &str, limit: usize) -> Outcome<f64> {
        let began = Instant::now();
        let terms = bough_search::parts(pattern);
        let mut terms: Vec<Term> =
            terms.iter().map(|term| Term::from_field_text(self.text, term)).collect();
        let query: Box<dyn Query> = match (terms.len(), terms.pop()) {
            (1, Some(term)) => Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
            (_, Some(term)) => {
                terms.push(term);
                Box::new(PhraseQuery::new(terms))
            }
            _ => return Err(format!("{pattern:?} has no words").into()),
        };
        self.reader.searcher().search(&*query, &TopDocs::with_limit(limit))?;
        Ok(began.elapsed().as_secs_f64() * 1000.0)
    }
}
