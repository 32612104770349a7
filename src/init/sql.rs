//! The migration: the column, its comment and the view. Pure.

use super::draft::{Draft, Entry};
use super::field::literal;
use crate::printable::{printable, shell_word};

/// A function of Postgres takes a hundred arguments: fifty fields. A wide document is put together.
const FIELDS: usize = 45;

pub(super) fn text(draft: &Draft, mapping: &str, config: &str) -> String {
    let Draft { table, view, revision, .. } = draft;
    let mut text = format!(
        "-- What Elasticsearch gets of {}. `catchword init {}` wrote it; change it as you like.\n\
         -- Apply it as a migration of your own, or: psql -1 -v ON_ERROR_STOP=1 \"$DATABASE_URL\" -f THIS_FILE\n\
         -- Then: catchword migrate, catchword doctor, {}\n\
         -- A field has three places: here, its type in {mapping}, and `watch` in {config} if that names columns.\n",
        printable(table),
        printable(&shell_word(table)),
        draft.fill_command(),
    );
    text += &format!(
        "\n-- If somebody holds the table, give up instead of making its writers wait: then try again.\n\
         set local lock_timeout = '2s';\n\
         \n-- The trigger puts the version of the document here. Instant on any size; the comment says that catchword may have the column.\n\
         alter table {table} add column if not exists {0} bigint;\n\
         comment on column {table}.{0} is 'catchword: revision';\n",
        revision.quoted
    );
    text += &format!(
        "\n-- What this view does not return is not in the index. Times are in UTC: catchword's sessions see to it.\n\
         create view {view} as\nselect\n{}  t.{} as revision,\n{}from {table} t{};\n\
         comment on view {view} is 'catchword: what Elasticsearch holds of {}';\n",
        keys(draft),
        revision.quoted,
        body(draft),
        draft
            .condition
            .as_ref()
            .map_or(String::new(), |condition| format!("\n-- a soft delete: such a row leaves the index\nwhere {condition}")),
        table.replace('\'', "''"),
    );
    text
}

/// One column is called key; several have their own names.
fn keys(draft: &Draft) -> String {
    match draft.key.as_slice() {
        [only] => format!("  t.{} as key,\n", only.quoted),
        several => several.iter().map(|column| format!("  t.{},\n", column.quoted)).collect(),
    }
}

fn body(draft: &Draft) -> String {
    let mut chunks: Vec<Vec<&Entry>> = vec![Vec::new()];
    let mut fields = 0;
    for entry in &draft.body {
        if matches!(entry, Entry::Field(_)) {
            if fields > 0 && fields % FIELDS == 0 {
                chunks.push(Vec::new());
            }
            fields += 1;
        }
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(entry);
        }
    }
    let objects: Vec<String> = chunks.iter().map(|chunk| object(chunk)).collect();
    format!("  {} as body\n", objects.join(" || "))
}

fn object(entries: &[&Entry]) -> String {
    let last = entries.iter().rposition(|entry| matches!(entry, Entry::Field(_)));
    let mut text = String::from("jsonb_build_object(\n");
    for (n, entry) in entries.iter().enumerate() {
        let comma = if Some(n) == last { "" } else { "," };
        text += &match entry {
            Entry::LeftOut(left_out) => format!("    -- left out: {}: {}\n", printable(&left_out.what), printable(&left_out.why)),
            Entry::Field(field) if field.written.contains("(\n") => {
                format!("    -- {}\n    {}, {}{comma}\n", printable(&field.why), literal(&field.name), field.written)
            }
            Entry::Field(field) => format!("    {}, {}{comma} -- {}\n", literal(&field.name), field.written, printable(&field.why)),
        };
    }
    text + "  )"
}
