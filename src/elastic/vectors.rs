//! Vectors in documents. Servers keep them apart from the document, in single precision and perhaps scaled to length one, and put them back
//! when they are asked: nearly as they were written. So they are compared by their values, as near as single precision is.

use bytes::Bytes;
use serde_json::Value;

/// How far two numbers of a vector may lie apart, as a share of the vector's largest: single precision has seven digits, and scaling costs one.
const NEAR: f64 = 1e-6;

/// Where the vectors of an index's documents are, as paths of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vectors(Vec<Vec<String>>);

impl Vectors {
    /// From the mappings of an index.
    pub(super) fn of(mappings: &Value) -> Vectors {
        let mut found = Vectors::default();
        found.find(mappings, &mut Vec::new());
        found
    }

    fn find(&mut self, mapping: &Value, path: &mut Vec<String>) {
        for (name, field) in mapping.get("properties").and_then(Value::as_object).into_iter().flatten() {
            path.push(name.clone());
            if matches!(field.get("type").and_then(Value::as_str), Some("dense_vector" | "rank_vectors" | "knn_vector")) {
                self.0.push(path.clone());
            }
            self.find(field, path);
            path.pop();
        }
    }

    /// A document as the index has it, in which each vector that is near the wanted one is the wanted one. What differs still differs.
    pub fn rounded(&self, stored: &Bytes, wanted: &[u8]) -> Bytes {
        let parsed = || Some((serde_json::from_slice(stored).ok()?, serde_json::from_slice(wanted).ok()?));
        if self.0.is_empty() {
            return stored.clone();
        }
        let Some((mut has, wants)): Option<(Value, Value)> = parsed() else { return stored.clone() };
        for path in &self.0 {
            take_near(&mut has, &wants, path);
        }
        Bytes::from(has.to_string())
    }
}

fn take_near(has: &mut Value, wants: &Value, path: &[String]) {
    match (has, wants, path.split_first()) {
        (has, wants, None) if are_near(has, wants) => *has = wants.clone(),
        (Value::Object(has), Value::Object(wants), Some((name, rest))) => {
            match (has.get_mut(name), wants.get(name)) {
                (Some(has), Some(wants)) => take_near(has, wants, rest),
                // a vector that is null has no value to put back
                (None, Some(Value::Null)) if rest.is_empty() => _ = has.insert(name.clone(), Value::Null),
                _ => {}
            }
        }
        // an array of objects, each with its vector
        (Value::Array(has), Value::Array(wants), Some(_)) => {
            has.iter_mut().zip(wants).for_each(|(has, wants)| take_near(has, wants, path));
        }
        _ => {}
    }
}

fn are_near(a: &Value, b: &Value) -> bool {
    let (Value::Array(a), Value::Array(b)) = (a, b) else { return false };
    if a.len() == b.len() && !a.is_empty() && a.iter().chain(b).all(Value::is_array) {
        return a.iter().zip(b).all(|(a, b)| are_near(a, b));
    }
    let numbers = |all: &[Value]| all.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>();
    let (Some(a), Some(b)) = (numbers(a), numbers(b)) else { return false };
    let largest = a.iter().chain(&b).fold(0.0, |most: f64, n| most.max(n.abs()));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= largest * NEAR)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn same(has: Value, wants: Value) -> bool {
        let mappings = json!({ "properties": {
            "v": { "type": "dense_vector" }, "n": { "type": "float" },
            "parts": { "type": "nested", "properties": { "v": { "type": "knn_vector" } } },
        } });
        let rounded = Vectors::of(&mappings).rounded(&Bytes::from(has.to_string()), wants.to_string().as_bytes());
        serde_json::from_slice::<Value>(&rounded).unwrap() == wants
    }

    #[test]
    fn a_vector_in_single_precision_is_the_one_that_was_written() {
        assert!(same(json!({ "v": [0.33333334, 1.0] }), json!({ "v": [0.333333333333, 1.0] })));
        assert!(same(json!({ "v": [0.99999994, 1e-9] }), json!({ "v": [1, 0] })));
        // by 9.4.3
        assert!(same(json!({ "v": [0.099999994, 0.19999999, 0.3] }), json!({ "v": [0.1, 0.2, 0.3] })));
        assert!(same(json!({}), json!({ "v": null })));
        assert!(same(json!({ "parts": [{ "v": [0.1] }, { "v": [0.20000000298] }] }), json!({ "parts": [{ "v": [0.1] }, { "v": [0.2] }] })));
    }

    #[test]
    fn what_differs_still_differs() {
        assert!(!same(json!({ "v": [0.3334, 1.0] }), json!({ "v": [0.333333333333, 1.0] })));
        assert!(!same(json!({ "v": [0.5] }), json!({ "v": [0.5, 0.5] })));
        assert!(!same(json!({}), json!({ "n": null })) && !same(json!({ "v": [0.5] }), json!({ "v": null })));
        assert!(!same(json!({}), json!({ "v": [0.5] })) && !same(json!({ "v": null }), json!({ "v": [0.5] })));
        assert!(!same(json!({ "n": 0.33333334 }), json!({ "n": 0.333333333333 })), "only vectors are rounded");
        assert!(!same(json!({ "parts": [{ "v": [0.1] }] }), json!({ "parts": [{ "v": [0.2] }] })));
    }
}
