//! Reads a query plan: does it read a whole table? Pure.

use std::collections::HashSet;

use serde_json::Value;

/// The first of the given tables that the plan reads from end to end.
pub(super) fn reads_whole(explained: &Value, tables: &HashSet<String>) -> Option<String> {
    explained.as_array()?.iter().find_map(|statement| node(statement.get("Plan")?, &|table| tables.contains(table)))
}

/// The first table, of any size, that the plan reads from end to end.
pub(super) fn without_index(explained: &Value) -> Option<String> {
    explained.as_array()?.iter().find_map(|statement| node(statement.get("Plan")?, &|_| true))
}

fn node(plan: &Value, counts: &dyn Fn(&str) -> bool) -> Option<String> {
    let text = |name: &str| plan.get(name).and_then(Value::as_str);
    let unbounded = match text("Node Type") {
        Some("Seq Scan" | "Sample Scan") => true,
        // without a condition an index is read from end to end
        Some("Index Scan" | "Index Only Scan") => plan.get("Index Cond").is_none(),
        _ => false,
    };
    match text("Relation Name") {
        Some(table) if unbounded && counts(table) => Some(table.to_owned()),
        _ => plan.get("Plans")?.as_array()?.iter().find_map(|child| node(child, counts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scan_without_a_condition_reads_the_whole_table() {
        let tables = HashSet::from(["annotation".to_owned()]);
        let scan = |node: Value| json!([{ "Plan": { "Node Type": "Append", "Plans": [node] } }]);
        let cases = [
            (json!({ "Node Type": "Seq Scan", "Relation Name": "annotation" }), true),
            (json!({ "Node Type": "Seq Scan", "Relation Name": "small" }), false),
            (json!({ "Node Type": "Index Only Scan", "Relation Name": "annotation" }), true),
            (json!({ "Node Type": "Index Scan", "Relation Name": "annotation", "Index Cond": "(id = any($2))" }), false),
            (json!({ "Node Type": "WindowAgg", "Plans": [{ "Node Type": "Seq Scan", "Relation Name": "annotation" }] }), true),
            (
                json!({ "Node Type": "Bitmap Heap Scan", "Relation Name": "annotation", "Plans": [{ "Node Type": "Bitmap Index Scan" }] }),
                false,
            ),
        ];
        for (plan, whole) in cases {
            assert_eq!(reads_whole(&scan(plan.clone()), &tables).is_some(), whole, "{plan}");
        }
    }
}
