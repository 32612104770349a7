//! The choices, on tables that nobody has to create.

use super::draft::{Draft, draft};
use super::facts::{Column, Facts, ForeignKey, Index, Named, Relation};
use super::{mapping, sql, toml};
use crate::config::Config;

/// A plain table with a key `id`, and these columns of text; a name that ends in `_at` is a time.
fn table(id: i64, name: &str, columns: &[&str]) -> Relation {
    let column = |name: &str, base: &str| Column {
        name: name.into(),
        quoted: name.into(),
        type_name: base.into(),
        base: base.into(),
        base_kind: "b".into(),
        ..Column::default()
    };
    let of = |name: &&str| {
        column(
            name,
            if name.ends_with("_at") {
                "timestamptz"
            } else if name.ends_with("_id") {
                "int8"
            } else {
                "text"
            },
        )
    };
    Relation {
        id,
        schema: "public".into(),
        name: name.into(),
        quoted_schema: "public".into(),
        quoted_name: name.into(),
        kind: "r".into(),
        persistence: "p".into(),
        is_visible: true,
        columns: [Column { not_null: true, ..column("id", "int8") }].into_iter().chain(columns.iter().map(of)).collect(),
        indexes: vec![Index { is_primary: true, is_unique: true, finds_equals: true, columns: vec!["id".into()] }],
        ..Relation::default()
    }
}

fn indexed(mut table: Relation, columns: &[&str]) -> Relation {
    let of = |column: &&str| Index { finds_equals: true, columns: vec![(*column).to_owned()], ..Index::default() };
    table.indexes.extend(columns.iter().map(of));
    table
}

fn refers(relation: i64, column: &str, refers_to: i64) -> ForeignKey {
    ForeignKey { relation, refers_to, columns: vec![column.into()], referred: vec!["id".into()], largest: None }
}

/// The first is the table itself.
fn facts(tables: Vec<Relation>, foreign_keys: Vec<ForeignKey>) -> Facts {
    Facts {
        table: tables[0].clone(),
        relations: tables.into_iter().map(|table| (table.id, table)).collect(),
        foreign_keys,
        collection: "note".into(),
        revision: Named { name: "catchword_revision".into(), quoted: "catchword_revision".into() },
        ..Facts::default()
    }
}

fn fields(draft: &Draft) -> Vec<&str> {
    draft.fields().map(|field| field.name.as_str()).collect()
}

fn why<'a>(draft: &'a Draft, what: &str) -> &'a str {
    draft.left_out.iter().find(|left_out| left_out.what == what).map_or("", |left_out| &left_out.why)
}

#[test]
fn what_is_written_is_json_and_a_configuration() {
    let author = table(2, "author", &["name", "email"]);
    let comment = indexed(table(3, "comment", &["note_id", "text", "updated_at"]), &["note_id"]);
    let note = indexed(table(1, "note", &["title", "password", "author_id", "updated_at", "deleted_at"]), &["author_id", "updated_at"]);
    let draft = draft(&facts(vec![note, author, comment], vec![refers(1, "author_id", 2), refers(3, "note_id", 1)])).unwrap();
    assert_eq!(fields(&draft), ["id", "title", "author_id", "updated_at", "author", "comment"]);
    serde_json::from_str::<serde_json::Value>(&mapping::text(&draft)).unwrap();
    let config = Config::parse(&toml::text(&draft, "note.json"), std::path::Path::new("catchword.toml")).unwrap();
    let collection = &config.collections[0];
    assert_eq!(collection.watch, ["title", "author_id", "updated_at", "deleted_at"]);
    assert_eq!(collection.scopes.iter().collect::<Vec<_>>(), [(&"author".to_owned(), &"author_id".to_owned())]);
    assert_eq!(collection.period.as_deref(), Some("updated_at"));
    let touches: Vec<(&str, Vec<&str>)> =
        collection.touches.iter().map(|touch| (touch.table.as_str(), touch.watch.iter().map(String::as_str).collect())).collect();
    assert_eq!(touches, [("author", vec!["name"]), ("comment", vec!["id", "text"])]);
    let text = sql::text(&draft, "note.json", "catchword.toml");
    assert!(text.contains("-- left out: password: looks like a secret") && text.ends_with("of note';\n"), "{text}");
}

#[test]
fn a_document_of_all_columns_needs_no_watch() {
    assert_eq!(draft(&facts(vec![table(1, "note", &["title"])], vec![])).unwrap().watch, None);
}

#[test]
fn two_parents_of_one_name_have_two() {
    let note = indexed(table(1, "note", &["author", "author_id", "person", "editor_id"]), &["author_id", "editor_id"]);
    let person = table(2, "person", &["name"]);
    let draft = draft(&facts(vec![note, person], vec![refers(1, "author_id", 2), refers(1, "editor_id", 2)])).unwrap();
    assert_eq!(fields(&draft)[5..], ["author_row", "editor"]);
    assert_eq!(draft.touches.len(), 2);
}

#[test]
fn what_would_read_a_whole_table_is_left_out_with_the_index_that_it_needs() {
    let large = Relation { large: true, ..table(1, "note", &["author_id"]) };
    let (author, comment) = (table(2, "author", &["name"]), table(3, "comment", &["note_id", "text"]));
    let keys = vec![refers(1, "author_id", 2), refers(3, "note_id", 1)];
    let without = draft(&facts(vec![large.clone(), author.clone(), comment.clone()], keys.clone())).unwrap();
    assert!(why(&without, "author").ends_with("create index concurrently on note (author_id)"), "{:?}", without.left_out);
    assert!(why(&without, "comment").ends_with("create index concurrently on comment (note_id)"), "{:?}", without.left_out);
    let tables = vec![indexed(large, &["author_id"]), author, indexed(comment, &["note_id"])];
    assert_eq!(fields(&draft(&facts(tables, keys)).unwrap())[2..], ["author", "comment"]);
}

#[test]
fn children_that_are_too_many_or_not_for_everybody_are_left_out() {
    let child = |id, name: &str| indexed(table(id, name, &["note_id", "text"]), &["note_id"]);
    let tables = vec![table(1, "note", &["title"]), child(2, "comment"), child(3, "note_log"), child(4, "api_tokens"), child(5, "visit")];
    let mut keys: Vec<ForeignKey> = (2..=5).map(|id| refers(id, "note_id", 1)).collect();
    keys[3].largest = Some(20_000.0);
    let few = draft(&facts(tables, keys)).unwrap();
    assert_eq!(fields(&few)[2..], ["comment"]);
    assert_eq!(why(&few, "visit"), "one row has about 20000 of them, too many for a document");
    assert_eq!((why(&few, "note_log"), why(&few, "api_tokens")), ("looks like it gets ever more rows", "looks like it holds secrets"));

    let names = ["a", "b", "c", "d", "e", "note_line"];
    let tables: Vec<Relation> =
        [table(1, "note", &["title"])].into_iter().chain((2..).zip(names).map(|(id, name)| child(id, name))).collect();
    let many = draft(&facts(tables, (2..=7).map(|id| refers(id, "note_id", 1)).collect())).unwrap();
    assert_eq!(fields(&many)[2..], ["note_line"], "a table that everything refers to");
}

#[test]
fn a_row_of_the_same_table_is_one_like_any_other_if_an_index_finds_those_that_refer_to_it() {
    let note = table(1, "note", &["title", "parent_id"]);
    let without = draft(&facts(vec![note.clone()], vec![refers(1, "parent_id", 1)])).unwrap();
    assert_eq!((fields(&without), without.touches.len()), (vec!["id", "title", "parent_id"], 0));
    assert!(why(&without, "note").ends_with("create index concurrently on note (parent_id)"), "{:?}", without.left_out);
    let with = draft(&facts(vec![indexed(note, &["parent_id"])], vec![refers(1, "parent_id", 1)])).unwrap();
    assert_eq!((fields(&with)[3..].to_vec(), with.touches[0].watch.as_slice()), (vec!["parent"], ["title".to_owned()].as_slice()));
}

#[test]
fn rows_that_a_table_between_joins_are_followed_if_an_index_leads_back() {
    let tables = |between: Relation| vec![table(1, "note", &["title"]), between, table(3, "tag", &["name"])];
    let keys = || vec![refers(2, "note_id", 1), refers(2, "tag_id", 3)];
    let between = indexed(table(2, "note_tag", &["note_id", "tag_id"]), &["note_id"]);
    let waived = draft(&facts(tables(between.clone()), keys())).unwrap();
    assert_eq!((fields(&waived)[2..].to_vec(), waived.touches.len(), waived.unwatched[0].table.as_str()), (vec!["tag"], 1, "tag"));
    let followed = draft(&facts(tables(indexed(between, &["tag_id"])), keys())).unwrap();
    assert_eq!((followed.touches.len(), followed.unwatched.len()), (2, 0));
    let text = toml::text(&followed, "note.json");
    assert!(text.contains(r#"column = "id", keys = "select note_id from note_tag where tag_id = any($1)", watch = ["name"]"#), "{text}");
}

#[test]
fn a_wide_document_is_put_together_from_parts_that_postgres_takes() {
    let names: Vec<String> = (0..210).map(|n| format!("column_{n}")).collect();
    let columns: Vec<&str> = names.iter().map(String::as_str).collect();
    let draft = draft(&facts(vec![table(1, "note", &columns)], vec![])).unwrap();
    let text = sql::text(&draft, "note.json", "catchword.toml");
    for part in text.split("jsonb_build_object(").skip(1) {
        assert!(part.matches(", t.").count() <= 50, "{part}");
    }
    assert_eq!(text.matches(", t.").count(), 211);
}
