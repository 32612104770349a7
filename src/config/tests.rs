use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::scratch::Scratch;
use super::*;

/// The least that is right; tests add lines to it.
const LEAST: &str = r#"
[[collection]]
name = "annotation"
table = "annotation"
key = "id"
view = "annotation_document"
mapping = "annotation.json"
"#;

const WHOLE: &str = r#"
[worker]
tick = "*/5 * * * *"
batch = 100
in_flight = 4
quick = "5ms"
canary = false
audit = "off"
sweep_after = "2h"

[[collection]]
name = "annotation"
table = "app.annotation"
key = "id"
view = "app.annotation_document"
mapping = "mappings/annotation.json"
index = "annotations.v2"
search_alias = "everything"
revision = "rev"
scopes = { user = "userid", group = "groupid", document = "document_id" }
period = "updated"
touches = [{ table = "document", column = "id", row_column = "document_id", watch = ["title"] }]
watch = ["text", "tags"]
delay = "2m"
fair_by = "userid"
fair_share = 0.25
"#;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("/etc/catchword.toml")).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(text: &str, sentence: &str) {
    assert_eq!(parse(text).unwrap_err(), format!("/etc/catchword.toml:{sentence}"));
}

#[track_caller]
fn one(added: &str) -> Collection {
    parse(&format!("{LEAST}{added}")).unwrap().collections.remove(0)
}

/// The added lines begin at line 8.
#[track_caller]
fn one_refused(added: &str, sentence: &str) {
    refused(&format!("{LEAST}{added}"), &format!("8: collection \"annotation\": {sentence}"));
}

#[test]
fn everything_that_can_be_written_is_read() {
    let config = parse(WHOLE).unwrap();
    assert_eq!(config.file, Path::new("/etc/catchword.toml"));
    assert_eq!(
        config.worker,
        Worker {
            tick: "0 */5 * * * *".into(),
            batch: 100,
            in_flight: 4,
            quick: Some(Duration::from_millis(5)),
            canary: false,
            audit: None,
            sweep_after: Duration::from_secs(7200)
        }
    );
    let scopes = [("user", "userid"), ("group", "groupid"), ("document", "document_id")];
    let scopes = scopes.map(|(scope, column)| (scope.to_owned(), column.to_owned()));
    assert_eq!(
        config.collections,
        [Collection {
            name: "annotation".into(),
            table: "app.annotation".into(),
            key: vec!["id".into()],
            view: "app.annotation_document".into(),
            mapping: "/etc/mappings/annotation.json".into(),
            index: "annotations.v2".into(),
            search_alias: Some("everything".into()),
            revision: "rev".into(),
            scopes: BTreeMap::from(scopes),
            period: Some("updated".into()),
            touches: vec![Touch {
                table: "document".into(),
                column: vec!["id".into()],
                row_column: vec!["document_id".into()],
                watch: vec!["title".into()],
                ..Touch::default()
            }],
            unwatched: Vec::new(),
            watch: vec!["text".into(), "tags".into()],
            delay: Some(Duration::from_secs(120)),
            fair_by: Some("userid".into()),
            fair_share: 0.25,
        }]
    );
}

#[test]
fn what_is_not_written_has_a_default() {
    let config = parse(LEAST).unwrap();
    let day = Duration::from_secs(24 * 3600);
    let quick = Some(Duration::from_millis(25));
    let usual =
        Worker { tick: "0 * * * * *".into(), batch: 2500, in_flight: 2, quick, canary: true, audit: Some(day), sweep_after: 7 * day };
    assert_eq!(config.worker, usual);
    let annotation = &config.collections[0];
    assert_eq!(annotation.index, "annotation");
    assert_eq!(annotation.revision, "catchword_revision");
    assert_eq!(annotation.delay, None);
    assert!(annotation.scopes.is_empty() && annotation.touches.is_empty());
    assert!(annotation.watch.is_empty() && annotation.period.is_none());
    assert_eq!(parse(&format!("[worker]\n{LEAST}")).unwrap().worker, Worker::default());
}

#[test]
fn a_path_without_folder_counts_from_the_current_one() {
    let config = Config::parse(LEAST, Path::new("catchword.toml")).unwrap();
    assert_eq!(config.collections[0].mapping, Path::new("annotation.json"));
    let absolute = LEAST.replace("annotation.json", "/srv/a.json");
    assert_eq!(parse(&absolute).unwrap().collections[0].mapping, Path::new("/srv/a.json"));
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let error = parse("[worker]\n\nbatch = = 1\n").unwrap_err();
    assert!(error.starts_with("/etc/catchword.toml:3: this is not TOML: "), "{error}");
    assert!(!error.contains('\n'), "{error}");
    let error = parse(&format!("{LEAST}key = \"id\"")).unwrap_err();
    assert!(error.starts_with("/etc/catchword.toml:8: this is not TOML: duplicate key"), "{error}");
}

#[test]
fn there_is_at_least_one_collection() {
    refused("", "1: collection is missing; add [[collection]]");
    refused("collection = []", "1: collection is missing; add [[collection]]");
    refused("[collection]", "1: collection cannot be a table; write [[collection]]");
    refused("collection = [1]", "1: collection cannot be a number; write [[collection]]");
}

#[test]
fn an_unknown_key_is_refused_with_a_guess_or_the_list() {
    refused("[[collections]]", "1: collections is not a known key; did you mean collection?");
    refused("\n[alarm]", "2: alarm is not a known key; the keys here are: worker, collection");
    refused("[worker]\nbatches = 1", "2: worker: batches is not a known key; did you mean batch?");
    one_refused("scope = {}", "scope is not a known key; did you mean scopes?");
    one_refused(
        "retries = 1",
        "retries is not a known key; the keys here are: name, table, key, view, mapping, index, search_alias, revision, scopes, \
         period, touches, unwatched, watch, delay, fair_by, fair_share",
    );
    one_refused(r#"touches = [{ tabel = "document" }]"#, "touch 1: tabel is not a known key; did you mean table?");
}

#[test]
fn the_first_unknown_key_is_named() {
    refused("zzz = 1\naaa = 1", "1: zzz is not a known key; the keys here are: worker, collection");
}

#[test]
fn a_secret_in_the_file_is_sent_to_the_environment_and_not_printed() {
    let error = parse("database_url = \"postgres://u:hunter2@h/d\"").unwrap_err();
    assert!(error.contains("come from the environment: set DATABASE_URL"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn a_missing_key_is_refused_with_a_line_to_add() {
    for (key, line) in [
        ("table", r#"table = "annotation""#),
        ("key", r#"key = "id""#),
        ("view", r#"view = "annotation_document""#),
        ("mapping", r#"mapping = "annotation.json""#),
    ] {
        let without = LEAST.replace(line, "");
        refused(&without, &format!("2: collection \"annotation\": {key} is missing; add {line}"));
    }
    let nameless = LEAST.replace(r#"name = "annotation""#, "");
    refused(&nameless, r#"2: collection 1: name is missing; add name = "annotation""#);
    one_refused(
        r#"touches = [{ table = "document", column = "id" }]"#,
        r#"touch 1: row_column is missing; add row_column = "document_id""#,
    );
}

#[test]
fn a_wrong_type_is_refused_with_a_right_line() {
    one_refused("delay = 60", r#"delay cannot be a number; write delay = "60s""#);
    one_refused("period = true", r#"period cannot be true or false; write period = "updated""#);
    one_refused("index = 1.5", r#"index cannot be a number with a decimal point; write index = "annotation""#);
    one_refused("index = 2020-01-01", r#"index cannot be a date or time; write index = "annotation""#);
    one_refused("scopes = [\"user\"]", r#"scopes cannot be a list; write scopes = { user = "userid" }"#);
    one_refused("scopes = { user = 1 }", r#"scopes.user cannot be a number; write scopes = { user = "userid" }"#);
    one_refused("watch = \"text\"", r#"watch cannot be a text; write watch = ["text", "tags"]"#);
    one_refused("watch = [1]", r#"watch cannot be a number; write watch = ["text", "tags"]"#);
    let touches = r#"write touches = [{ table = "document", column = "id", row_column = "document_id", watch = ["title"] }]"#;
    one_refused(
        r#"touches = [{ table = "a", column = "b", row_column = "c", watch = "d" }]"#,
        r#"touch 1: watch cannot be a text; write watch = ["title", "web_uri"]"#,
    );
    one_refused("touches = [\"document\"]", &format!("touches cannot be a text; {touches}"));
    one_refused("touches = {}", &format!("touches cannot be a table; {touches}"));
    refused("worker = 1", "1: worker cannot be a number; write [worker]");
    refused("[worker]\nbatch = \"9\"", "2: worker: batch cannot be a text; write batch = 2500");
    refused("[worker]\ntick = 60", r#"2: worker: tick cannot be a number; write tick = "0 * * * * *""#);
}

#[test]
fn an_audit_and_a_sweep_wait_an_hour_at_least() {
    let worker = |lines: &str| parse(&format!("[worker]\n{lines}\n{LEAST}")).map(|config| config.worker);
    assert_eq!(worker("audit = \"6h\"").unwrap().audit, Some(Duration::from_secs(6 * 3600)));
    assert_eq!(worker("sweep_after = \"1h\"").unwrap().sweep_after, Duration::from_secs(3600));
    for (line, sentence) in [
        ("sweep_after = \"59m\"", "sweep_after is shorter than an hour; write a time span of an hour or more, as in \"7days\""),
        ("sweep_after = \"off\"", "sweep_after is not a time span; write a time span of an hour or more, as in \"7days\""),
        ("audit = \"1m\"", "audit is shorter than an hour; write a time span of an hour or more, as in \"1day\", or \"off\""),
        ("audit = \"daily\"", "audit is not a time span; write a time span of an hour or more, as in \"1day\", or \"off\""),
        ("audit = \"900days\"", "audit is longer than a year; write a time span of an hour or more, as in \"1day\", or \"off\""),
    ] {
        let said = worker(line).unwrap_err();
        assert!(said.ends_with(sentence), "{said}");
    }
}

#[test]
fn the_quick_lane_asks_every_millisecond_to_every_ten_seconds_or_never() {
    let worker = |lines: &str| parse(&format!("[worker]\n{lines}\n{LEAST}")).map(|config| config.worker);
    for (text, span) in [("1ms", Some(1)), ("25ms", Some(25)), ("10s", Some(10_000)), ("off", None)] {
        assert_eq!(worker(&format!("quick = \"{text}\"")).unwrap().quick, span.map(Duration::from_millis), "{text}");
    }
    let write = r#"write a time span from "1ms" to "10s", as in "25ms", or "off""#;
    for (text, problem) in [
        ("999us", "is shorter than a millisecond"),
        ("0s", "is shorter than a millisecond"),
        ("11s", "is longer than 10 seconds"),
        ("25", "is not a time span"),
        ("-1ms", "is not a time span"),
        ("on", "is not a time span"),
        ("", "is not a time span"),
    ] {
        refused(&format!("[worker]\nquick = \"{text}\"\n{LEAST}"), &format!("2: worker: quick {problem}; {write}"));
    }
    refused("[worker]\nquick = 25", r#"2: worker: quick cannot be a number; write quick = "25ms""#);
    refused("[worker]\nquick = true", r#"2: worker: quick cannot be true or false; write quick = "25ms""#);
    refused("[worker]\nquick = false", r#"2: worker: quick cannot be true or false; write quick = "off""#);
    refused("[worker]\naudit = false", r#"2: worker: audit cannot be true or false; write audit = "off""#);
}

#[test]
fn the_workers_numbers_have_limits() {
    let worker = |line: &str| parse(&format!("[worker]\n{line}\n{LEAST}")).map(|config| config.worker);
    assert_eq!(worker("batch = 1").unwrap().batch, 1);
    assert_eq!(worker("batch = 2_500").unwrap().batch, 2500);
    assert_eq!(worker("batch = 0xff").unwrap().batch, 255);
    for number in ["0", "2501", "-1", "99999999999999999999"] {
        let error = worker(&format!("batch = {number}")).unwrap_err();
        assert_eq!(error, format!("/etc/catchword.toml:2: worker: batch is {number}; write a number from 1 to 2500"));
    }
    assert_eq!(worker("in_flight = 1").unwrap().in_flight, 1);
    assert_eq!(worker("in_flight = 4").unwrap().in_flight, 4);
    for number in [0, 5] {
        let error = worker(&format!("in_flight = {number}")).unwrap_err();
        assert!(error.ends_with(&format!("in_flight is {number}; write a number from 1 to 4")), "{error}");
    }
    assert_eq!(worker("tick = \"* * * * * *\"").unwrap().tick, "* * * * * *");
    let error = worker("tick = \"hourly\"").unwrap_err();
    assert!(error.contains(":2: worker: tick has 1 fields, and cron has five or six; write"), "{error}");
}

#[test]
fn names_are_judged_where_they_stand() {
    let named = LEAST.replace(r#"name = "annotation""#, r#"name = "Annotation""#);
    let error = parse(&named).unwrap_err();
    assert!(error.contains(":3: collection \"Annotation\": name is \"Annotation\"; write a lowercase"), "{error}");
    for (line, empty) in [(r#"table = "annotation""#, "table"), (r#"key = "id""#, "key"), (r#"view = "annotation_document""#, "view")] {
        let error = parse(&LEAST.replace(line, &format!("{empty} = \"\""))).unwrap_err();
        assert!(error.contains(&format!("\"annotation\": {empty} has an empty name")), "{error}");
    }
    let error = parse(&LEAST.replace("annotation.json", "")).unwrap_err();
    assert!(error.contains("mapping is not a path; write mapping ="), "{error}");
    let write = "write the name as Postgres has it";
    one_refused("revision = \"\"", &format!("revision has an empty name; {write}"));
    one_refused("period = \"a\\u0000\"", &format!("period has a NUL in a name; {write}"));
    one_refused("watch = [\"text\", \"\"]", &format!("watch has an empty name; {write}"));
    one_refused("scopes = { user = \"\" }", &format!("scopes.user has an empty name; {write}"));
    one_refused("scopes = { all = \"id\" }", "scopes.all would hide the flag --all; choose another name, for instance by-all");
    one_refused(
        r#"touches = [{ table = "a", column = "b", row_column = "" }]"#,
        &format!("touch 1: row_column has an empty name; {write}"),
    );
    one_refused(
        r#"touches = [{ table = "a", column = ["b", ""], row_column = "c" }]"#,
        &format!("touch 1: column has an empty name; {write}"),
    );
    let error = parse(&format!("{LEAST}index = \"Big\"")).unwrap_err();
    assert!(error.contains("index is \"Big\", which Elasticsearch refuses"), "{error}");
}

#[test]
fn a_touch_names_columns_an_expression_or_a_query() {
    let touch = |entry: &str| {
        parse(&format!("{LEAST}touches = [{{ table = \"a\", {entry} }}]")).map(|config| config.collections[0].touches[0].clone())
    };
    let two = touch(r#"column = ["b", "c"], row_column = ["x", "y=z"]"#).unwrap();
    assert_eq!((two.column, two.row_column), (vec!["b".to_owned(), "c".into()], vec!["x".to_owned(), "y=z".into()]));
    let said = touch(r#"value = "b || c", keys = "select x from y where z = any($1)""#).unwrap();
    assert_eq!((said.value.as_deref(), said.keys.as_deref()), (Some("b || c"), Some("select x from y where z = any($1)")));
    for (entry, problem) in [
        (r#"column = "b", value = "c", row_column = "d""#, "value stands beside column, and one of them is enough"),
        (r#"column = "b", keys = "c", row_column = "d""#, "keys stands beside row_column, and one of them is enough"),
        (r#"column = "b", row_column = ["c", "d"]"#, "row_column names 2, and column 1; name as many"),
        (r#"value = "b", row_column = ["c", "d"]"#, "row_column names 2, and column 1; name as many"),
        (r#"value = " ", row_column = "c""#, "value is empty; write SQL"),
        (r#"row_column = "c""#, "column is missing; add column ="),
        (r#"column = [], row_column = "c""#, "column is missing; add column ="),
        (r#"column = 1, row_column = "c""#, "column cannot be a number; write column ="),
    ] {
        let error = touch(entry).unwrap_err();
        assert!(error.contains(&format!("touch 1: {problem}")), "{entry}: {error}");
    }
}

#[test]
fn a_fair_share_is_a_part_of_a_whole_and_needs_a_column_of_tenants() {
    assert_eq!((one("").fair_by, one("").fair_share), (None, 1.0));
    for (text, share) in [("0.5", 0.5), ("1", 1.0), ("1.0", 1.0), ("1e-3", 0.001)] {
        let read = one(&format!("fair_by = \"Owner\"\nfair_share = {text}"));
        assert_eq!((read.fair_by.as_deref(), read.fair_share), (Some("owner"), share));
    }
    for text in ["0", "0.0", "1.1", "-0.5", "50", "nan", "inf"] {
        let remedy = "write a number above 0, and 1 at most: 0.5 is a half";
        one_refused(&format!("fair_share = {text}"), &format!("fair_share is {text}; {remedy}"));
    }
    one_refused("fair_share = \"half\"", "fair_share cannot be a text; write fair_share = 0.5");
    one_refused(
        "fair_share = 0.5",
        "fair_share says nothing without fair_by; write fair_by = \"userid\" too, with the column that names a row's tenant",
    );
    one_refused("fair_by = 1", "fair_by cannot be a number; write fair_by = \"userid\"");
    one_refused("fair_by = [\"a\", \"b\"]", "fair_by cannot be a list; write fair_by = \"userid\"");
    assert!(parse(&format!("{LEAST}fair_by = \"\"")).unwrap_err().contains("fair_by"));
}

#[test]
fn a_delay_is_whole_seconds_up_to_an_hour() {
    for (text, seconds) in [("0s", 0), ("60s", 60), ("1m 30s", 90), ("1h", 3600), ("2000ms", 2)] {
        assert_eq!(one(&format!("delay = \"{text}\"")).delay, Some(Duration::from_secs(seconds)));
    }
    let write = r#"write whole seconds up to an hour, as in "60s""#;
    one_refused("delay = \"500ms\"", &format!("delay is not in whole seconds; {write}"));
    one_refused("delay = \"3601s\"", &format!("delay is longer than an hour; {write}"));
    one_refused("delay = \"soon\"", &format!("delay is not a time span; {write}"));
    one_refused("delay = \"-1s\"", &format!("delay is not a time span; {write}"));
    one_refused("delay = \"\"", &format!("delay is not a time span; {write}"));
    one_refused("delay = \"60\"", &format!("delay is not a time span; {write}"));
}

#[test]
fn two_collections_share_neither_name_nor_index_nor_view_nor_revision() {
    let both = |second: &str| format!("{LEAST}{second}");
    let other = LEAST
        .replace(r#"name = "annotation""#, r#"name = "other""#)
        .replace(r#"view = "annotation_document""#, r#"view = "other_document""#);
    assert_eq!(parse(&both(&format!("{other}revision = \"catchword_revision_other\""))).unwrap().collections.len(), 2);
    refused(
        &both(&other),
        "9: collection \"other\": revision is \"catchword_revision\", which is that of collection \"annotation\" on the same table; \
         write revision = \"catchword_revision_other\", a column of its own, and let its view select that one",
    );
    let end = "give each collection its own";
    refused(&both(LEAST), &format!("9: collection \"annotation\": name is the name of an earlier collection too; {end}"));
    refused(
        &both(&format!("{other}index = \"annotation\"")),
        &format!("9: collection \"other\": index is \"annotation\", which collection \"annotation\" writes to; {end}"),
    );
    refused(
        &both(&other.replace("other_document", "annotation_document")),
        &format!("9: collection \"other\": view and table are those of collection \"annotation\"; {end}"),
    );
}

#[test]
fn a_collection_is_found_by_name_or_by_being_the_only_one() {
    let config = parse(LEAST).unwrap();
    assert_eq!(config.collection(None).unwrap().name, "annotation");
    assert_eq!(config.collection(Some("annotation")).unwrap().name, "annotation");
    let error = config.collection(Some("note")).unwrap_err();
    assert_eq!(error.to_string(), "there is no collection \"note\" in /etc/catchword.toml; name one of: annotation");
    let several = format!("{LEAST}{}", LEAST.replace("annotation", "other"));
    let error = parse(&several).unwrap().collection(None).unwrap_err().to_string();
    assert_eq!(error, "there are several collections; name one of: annotation, other");
}

#[test]
fn reading_looks_at_the_mapping_too() {
    let scratch = Scratch::new();
    let file = scratch.file("catchword.toml", LEAST);
    let read = || Config::read(&file).map_err(|error| error.to_string());

    let error = read().unwrap_err();
    assert!(error.starts_with("collection \"annotation\": mapping "), "{error}");
    assert!(error.contains("annotation.json cannot be read: "), "{error}");
    for (content, problem) in [("{", "is not JSON: "), ("[]", "is not a JSON object; "), ("", "is not JSON: ")] {
        scratch.file("annotation.json", content);
        let error = read().unwrap_err();
        assert!(error.contains(problem) && error.contains("write {\"settings\""), "{error}");
    }
    scratch.file("annotation.json", r#"{"mappings": {}}"#);
    let config = read().unwrap();
    assert_eq!(config.collections[0].mapping_json().unwrap(), serde_json::json!({"mappings": {}}));
}

#[test]
fn a_file_that_is_not_there_is_refused_with_where_to_say_it() {
    let error = Config::read(Path::new("/nowhere/catchword.toml")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere/catchword.toml: "), "{error}");
    assert!(error.ends_with("; say where it is with --config or CATCHWORD_CONFIG"), "{error}");
}

#[test]
fn a_search_alias_is_no_collections_index() {
    let other = LEAST.replace("annotation", "other");
    let shared = parse(&format!("{LEAST}search_alias = \"everything\"\n{other}search_alias = \"everything\"")).unwrap();
    assert!(shared.collections.iter().all(|collection| collection.search_alias.as_deref() == Some("everything")));

    let end = "which a collection has as its index; choose a name that is no collection's index";
    for (added, name) in [("", "annotation"), ("index = \"a\"\n", "a"), ("", "catchword_canary")] {
        let error = parse(&format!("{LEAST}{added}search_alias = \"{name}\"")).unwrap_err();
        assert!(error.ends_with(&format!("search_alias is \"{name}\", {end}")), "{error}");
    }
    let error = parse(&format!("{LEAST}{other}search_alias = \"annotation\"")).unwrap_err();
    assert!(error.ends_with(&format!("search_alias is \"annotation\", {end}")), "{error}");
    let error = parse(&format!("{LEAST}search_alias = \"other\"\n{other}")).unwrap_err();
    assert!(error.ends_with("index is \"other\", the search_alias of collection \"annotation\"; choose another"), "{error}");
    for bad in ["Every", "a b", "", "all-000001", "*"] {
        let error = parse(&format!("{LEAST}search_alias = \"{bad}\"")).unwrap_err();
        assert!(error.contains("8: collection \"annotation\": search_alias "), "{error}");
    }
}
