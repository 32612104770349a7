//! The users, groups, pages and words that every seed shares.
//!
//! Popularity follows Zipf's law, as it does in real life: a few pages, users and groups have most
//! of the annotations, and a long tail has one each. So a reindex of "one user" can be large or small.

use rand::Rng;

use crate::generate::generator::Page;

/// How many users write; the first writes about a twelfth of everything.
const USERS: usize = 5_000;
/// How many groups there are beside `__world__`.
const GROUPS: usize = 500;
/// How many pages are annotated.
const PAGES: usize = 20_000;
/// Of ten annotations, how many are for everybody and not for a group.
const WORLD_OF_TEN: u32 = 6;

const NAMES: [&str; 20] = [
    "mina", "jonas", "aisha", "pedro", "ingrid", "wei", "fatou", "luca", "sofia", "tariq", "hana", "oleg", "amara", "yusuf", "noor",
    "piotr", "leila", "kenji", "ruth", "diego",
];

const SITES: [&str; 12] = [
    "en.wikipedia.example",
    "news.example.com",
    "journals.example.org",
    "archive.example.net",
    "blog.example.io",
    "law.example.gov",
    "www.example.edu",
    "texts.example.edu",
    "preprints.example.org",
    "maps.example.com",
    "docs.example.dev",
    "zeitung.example.de",
];

const TAGS: [&str; 16] = [
    "history",
    "biology",
    "question",
    "To Read",
    "method",
    "citation needed",
    "law",
    "climate",
    "homework",
    "poetry",
    "évidence",
    "statistics",
    "typo",
    "important",
    "philosophie",
    "data",
];

/// Common words first: they are drawn by Zipf's law too. Some are not ASCII, some hold what JSON,
/// HTML and shells escape, because what people write does.
const WORDS: [&str; 120] = [
    "the",
    "of",
    "and",
    "to",
    "a",
    "in",
    "is",
    "that",
    "this",
    "it",
    "as",
    "for",
    "with",
    "not",
    "was",
    "on",
    "are",
    "by",
    "but",
    "from",
    "they",
    "which",
    "or",
    "an",
    "we",
    "there",
    "what",
    "so",
    "if",
    "would",
    "about",
    "more",
    "author",
    "argument",
    "evidence",
    "claim",
    "passage",
    "question",
    "seems",
    "because",
    "however",
    "chapter",
    "data",
    "study",
    "result",
    "between",
    "context",
    "example",
    "point",
    "source",
    "meaning",
    "compare",
    "earlier",
    "later",
    "page",
    "section",
    "figure",
    "table",
    "method",
    "sample",
    "theory",
    "reader",
    "language",
    "translation",
    "original",
    "version",
    "edition",
    "history",
    "century",
    "climate",
    "species",
    "cell",
    "protein",
    "measure",
    "error",
    "significant",
    "correlation",
    "cause",
    "effect",
    "policy",
    "court",
    "ruling",
    "precedent",
    "statute",
    "market",
    "price",
    "labour",
    "growth",
    "network",
    "algorithm",
    "proof",
    "lemma",
    "naïve",
    "café",
    "Gödel",
    "Übersetzung",
    "señal",
    "вопрос",
    "意味",
    "σκέψη",
    "“quoted”",
    "it’s",
    "don't",
    "\"sic\"",
    "<em>really</em>",
    "$x^2$",
    "C:\\temp",
    "50%",
    "e.g.",
    "cf.",
    "p. 47",
    "https://example.org/ref?a=1&b=2",
    "🤔",
    "👍",
    "—",
    "…",
    "footnote",
    "appendix",
    "paraphrase",
    "counterexample",
];

/// One of `n` things, the first most often: the k-th about as often as 1/k says.
fn zipf(rng: &mut impl Rng, n: usize) -> usize {
    // a power of n whose exponent is uniform has exactly these odds, without a table of n sums
    let rank = (n as f64).powf(rng.random::<f64>()) as usize;
    rank.clamp(1, n) - 1
}

pub(super) fn userid(rng: &mut impl Rng) -> String {
    let user = zipf(rng, USERS);
    format!("acct:{}{}@example.org", NAMES[user % NAMES.len()], user)
}

pub(super) fn groupid(rng: &mut impl Rng) -> String {
    if rng.random_ratio(WORLD_OF_TEN, 10) {
        return "__world__".to_owned();
    }
    // eight letters as Hypothesis' group ids have them, spread by a multiplication
    format!("{:08x}", (zipf(rng, GROUPS) as u32 + 1).wrapping_mul(0x9E37_79B1))
}

pub(super) fn page(rng: &mut impl Rng) -> Page {
    let number = zipf(rng, PAGES);
    let site = SITES[number % SITES.len()];
    let subject = WORDS[32 + number % 60];
    Page {
        uri: format!("https://{site}/{subject}/{number}"),
        title: format!("{}{}, part {number}", subject[..1].to_uppercase(), &subject[1..]),
    }
}

/// The same page as somebody else's browser spells it.
pub(super) fn respell(rng: &mut impl Rng, uri: &str) -> String {
    match rng.random_range(0..10) {
        0 => uri.replacen("https:", "http:", 1),
        1 => format!("{uri}/"),
        2 => format!("{uri}#section-{}", rng.random_range(1..9)),
        _ => uri.to_owned(),
    }
}

pub(super) fn tags(rng: &mut impl Rng) -> Vec<String> {
    let many = [0, 0, 1, 1, 2, 3][rng.random_range(0..6)];
    let mut tags: Vec<String> = (0..many).map(|_| TAGS[zipf(rng, TAGS.len())].to_owned()).collect();
    tags.sort();
    tags.dedup();
    tags
}

/// About half a kilobyte on average, as real annotations have: one in ten is a mere highlight
/// without text, most are a few sentences, a few are long.
pub(super) fn text(rng: &mut impl Rng) -> String {
    if rng.random_ratio(1, 10) {
        return String::new();
    }
    // the sum of four uniform numbers is close to a bell curve; its exponential has the long tail
    let bell: f64 = (0..4).map(|_| rng.random::<f64>()).sum::<f64>() - 2.0;
    let words = (MEDIAN_WORDS * (1.3 * bell).exp()) as usize;
    let mut text = String::with_capacity(words * 7);
    for n in 0..words.max(1) {
        if n > 0 {
            text.push_str(if rng.random_ratio(1, 40) { "\n\n" } else { " " });
        }
        text.push_str(WORDS[zipf(rng, WORDS.len())]);
    }
    text
}

/// Words of a middling text; with the long tail the mean comes to about half a kilobyte.
const MEDIAN_WORDS: f64 = 85.0;
