//! A column's type: what Elasticsearch makes of it, and how the view writes it. Pure.

use super::facts::Column;
use super::suspect;

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Shown(Shown),
    /// It has no good form in a document, or none that could be guessed.
    LeftOut(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown {
    pub written: Written,
    /// The field's mapping, in JSON.
    pub mapping: String,
    /// For a comment; empty where the type speaks for itself.
    pub why: &'static str,
    pub sort: Sort,
}

/// How a value is written in the view.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Written {
    Plain,
    Text,
    Host,
}

/// What sort of field it is, as far as other choices depend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sort {
    /// Found by its words.
    Words,
    /// Found whole.
    Whole,
    Number,
    Time,
    Flag,
    /// Kept, and not searched.
    Kept,
}

/// Elasticsearch refuses a document with a longer keyword: 32,766 bytes, at four bytes a letter.
const WHOLE: &str = r#"{ "type": "keyword", "ignore_above": 8191 }"#;
const WORDS: &str = r#"{ "type": "text", "fields": { "keyword": { "type": "keyword", "ignore_above": 256 } } }"#;
/// A string up to this long is a code more often than a sentence.
const SHORT: i32 = 32;

/// Judges a column. `refers`: it is part of a key, so that it is looked for whole.
pub(super) fn kind(column: &Column, refers: bool) -> Kind {
    use Sort::*;
    use Written::*;
    let shown = |written, mapping: &str, why, sort| Kind::Shown(Shown { written, mapping: mapping.to_owned(), why, sort });
    let number = |name: &str| format!(r#"{{ "type": "{name}" }}"#);
    // infinity, NaN and the year 10000 cannot be searched, and must not keep the document out
    let lenient = |name: &str| format!(r#"{{ "type": "{name}", "ignore_malformed": true }}"#);
    if column.base_kind == "e" {
        return shown(Plain, WHOLE, "", Whole);
    }
    match column.base.as_str() {
        "bool" => shown(Plain, &number("boolean"), "", Flag),
        "int2" => shown(Plain, &number("short"), "", Number),
        "int4" => shown(Plain, &number("integer"), "", Number),
        "int8" | "oid" => shown(Plain, &number("long"), "", Number),
        "float4" => shown(Plain, &lenient("float"), "NaN and infinity are kept and not searched", Number),
        "float8" => shown(Plain, &lenient("double"), "NaN and infinity are kept and not searched", Number),
        "numeric" => numeric(column),
        "date" | "timestamp" | "timestamptz" => shown(Plain, &lenient("date"), "", Time),
        "time" | "timetz" | "interval" => shown(Text, WHOLE, "Elasticsearch has no such type", Whole),
        "uuid" => shown(Plain, WHOLE, "", Whole),
        // without its trailing blanks
        "bpchar" | "char" | "name" => shown(Text, WHOLE, "", Whole),
        "text" | "varchar" | "citext" => text(column, refers),
        "json" | "jsonb" | "hstore" => shown(
            Plain,
            r#"{ "type": "object", "enabled": false }"#,
            "kept and not searched; mapped as flattened, the values of an object would be found",
            Kept,
        ),
        "inet" if column.is_array => shown(Text, WHOLE, "", Whole),
        "inet" => shown(Host, &lenient("ip"), "the address without its mask", Whole),
        "cidr" | "macaddr" | "macaddr8" | "bit" | "varbit" | "ltree" => shown(Text, WHOLE, "", Whole),
        _ if matches!(column.base_kind.as_str(), "r" | "m") => {
            shown(Text, WHOLE, "as text; to search by it, show both ends as fields", Whole)
        }
        "bytea" => Kind::LeftOut("bytes have no place in a document"),
        "tsvector" | "tsquery" => Kind::LeftOut("Elasticsearch makes its own"),
        "geometry" | "geography" => Kind::LeftOut("write it as text and map it as geo_point or geo_shape: 'POINT (30 10)'"),
        "vector" | "halfvec" => Kind::LeftOut("write it as an array and map it as dense_vector, with its dims"),
        "xml" => Kind::LeftOut("write what is to be found as fields of their own"),
        "money" => Kind::LeftOut("how it is written follows the session; use numeric"),
        _ if column.base_kind == "c" => Kind::LeftOut("it is a row of its own; write its parts as fields"),
        // an extension's string
        _ if column.category == "S" => shown(Text, WHOLE, "", Whole),
        _ => Kind::LeftOut("no field type is known for it; cast it to one that is"),
    }
}

/// A double everywhere: a scaled float would keep decimals exact to the last digit, and not every server has it.
fn numeric(column: &Column) -> Kind {
    let shown = |mapping: &str, why| Kind::Shown(Shown { written: Written::Plain, mapping: mapping.to_owned(), why, sort: Sort::Number });
    match (column.precision, column.scale) {
        (Some(1..=18), Some(0)) => shown(r#"{ "type": "long", "ignore_malformed": true }"#, ""),
        (Some(1..=15), Some(0..)) => shown(r#"{ "type": "double", "ignore_malformed": true }"#, ""),
        _ => shown(r#"{ "type": "double", "ignore_malformed": true }"#, "searched with fifteen digits; the document has all of them"),
    }
}

fn text(column: &Column, refers: bool) -> Kind {
    let of = |mapping: &str, sort| Kind::Shown(Shown { written: Written::Plain, mapping: mapping.to_owned(), why: "", sort });
    let short = column.length.is_some_and(|length| length <= SHORT);
    // tags and the like
    let is_list = column.is_array;
    if refers || is_list || (short && !suspect::is_label(column)) || suspect::is_whole(column) {
        return of(WHOLE, Sort::Whole);
    }
    of(WORDS, Sort::Words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(base: &str) -> Column {
        Column { name: "x".into(), base: base.into(), base_kind: "b".into(), category: "U".into(), ..Column::default() }
    }

    fn mapping(column: Column) -> String {
        match kind(&column, false) {
            Kind::Shown(shown) => shown.mapping,
            Kind::LeftOut(why) => why.to_owned(),
        }
    }

    #[test]
    fn each_type_has_a_field_that_takes_all_its_values() {
        for (base, found) in [
            ("int4", r#"{ "type": "integer" }"#),
            ("int8", r#"{ "type": "long" }"#),
            ("bool", r#"{ "type": "boolean" }"#),
            ("timestamptz", r#"{ "type": "date", "ignore_malformed": true }"#),
            ("text", WORDS),
            ("uuid", WHOLE),
            ("jsonb", r#"{ "type": "object", "enabled": false }"#),
            ("bytea", "bytes have no place in a document"),
            ("tsvector", "Elasticsearch makes its own"),
            ("circle", "no field type is known for it; cast it to one that is"),
        ] {
            assert_eq!(mapping(column(base)), found, "{base}");
        }
        assert_eq!(mapping(Column { base_kind: "e".into(), ..column("mood") }), WHOLE);
        assert_eq!(mapping(Column { is_array: true, ..column("text") }), WHOLE);
    }

    #[test]
    fn a_number_without_decimals_is_whole_and_any_other_a_double() {
        let of = |precision, scale| mapping(Column { precision, scale, ..column("numeric") });
        assert_eq!(of(Some(10), Some(0)), r#"{ "type": "long", "ignore_malformed": true }"#);
        for (precision, scale) in [(None, None), (Some(10), Some(2)), (Some(30), Some(0)), (Some(5), Some(-2))] {
            assert_eq!(of(precision, scale), r#"{ "type": "double", "ignore_malformed": true }"#);
        }
    }

    #[test]
    fn a_text_is_found_by_its_words_and_a_code_whole() {
        let named = |name: &str, length| mapping(Column { name: name.into(), length, ..column("varchar") });
        assert_eq!(
            (named("body", None), named("headline", Some(200)), named("name", Some(20))),
            (WORDS.into(), WORDS.into(), WORDS.into())
        );
        assert_eq!((named("sku", Some(12)), named("page_url", None), named("status", None)), (WHOLE.into(), WHOLE.into(), WHOLE.into()));
        assert_eq!(kind(&column("text"), true), kind(&Column { name: "url".into(), ..column("text") }, false));
    }
}
