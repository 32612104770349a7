//! The Grafana dashboard: made from `dashboards/catchword.yaml`, whole, and readable.

use std::path::PathBuf;

use serde_json::{Value, json};

const SOURCE: &str = "dashboards/catchword.yaml";
const RENDERED: &str = "dashboards/catchword.json";

/// Grafana's grid.
const COLUMNS: u64 = 24;

#[test]
fn the_dashboard_is_what_its_source_says() {
    let made = format!("{}\n", serde_json::to_string_pretty(&render(&source())).unwrap());
    let path = root().join(RENDERED);
    if std::env::var_os("CATCHWORD_RENEW").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "{SOURCE} changed; renew {RENDERED} with CATCHWORD_RENEW=1");
}

#[test]
fn every_panel_has_a_unit_and_a_sentence() {
    let mut titles = std::collections::BTreeSet::new();
    for panel in panels() {
        let title = panel["title"].as_str().unwrap();
        assert!(titles.insert(title.to_owned()), "{title} is there twice");
        assert!(!panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap().is_empty(), "{title} has no unit");
        let sentence = panel["description"].as_str().unwrap();
        assert!(sentence.ends_with('.') && sentence.len() > 20, "{title}: {sentence}");
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{title} asks nothing");
    }
}

#[test]
fn the_first_row_says_whether_search_is_in_step_and_six_graphs_follow() {
    let all = dashboard()["panels"].as_array().unwrap().clone();
    let titles: Vec<&str> = all.iter().map(|panel| panel["title"].as_str().unwrap()).collect();
    assert_eq!(titles[0], "In step?");
    for wanted in ["Freshness", "Oldest due job", "Dead letters", "Stopped?"] {
        assert!(titles[..8].contains(&wanted), "{wanted} is not in the first row");
    }
    let spans = |span: &str| all.iter().filter(|panel| panel["timeFrom"] == span).count();
    assert_eq!((spans("30m"), spans("3h")), (3, 3));
    // nothing overlaps, nothing hangs over the edge
    let mut taken = std::collections::BTreeSet::new();
    for panel in &all {
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(at("x") + at("w") <= COLUMNS);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{} overlaps", panel["title"]);
            }
        }
    }
}

/// The panels that ask something.
pub fn panels() -> Vec<Value> {
    let all = dashboard()["panels"].as_array().unwrap().clone();
    all.into_iter().filter(|panel| panel["type"] != "row").collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&std::fs::read_to_string(root().join(RENDERED)).unwrap()).unwrap()
}

fn source() -> Value {
    serde_norway::from_str(&std::fs::read_to_string(root().join(SOURCE)).unwrap()).unwrap()
}

/// Lays the panels out from left to right, row by row.
fn render(source: &Value) -> Value {
    let (mut panels, mut y, mut id) = (Vec::new(), 0, 0);
    for row in source["rows"].as_array().unwrap() {
        id += 1;
        let place = json!({ "x": 0, "y": y, "w": COLUMNS, "h": 1 });
        panels.push(json!({ "id": id, "type": "row", "title": row["title"], "collapsed": false, "gridPos": place, "panels": [] }));
        y += 1;
        let (mut x, mut height) = (0, 0);
        for panel in row["panels"].as_array().unwrap() {
            id += 1;
            let (width, tall) = (panel["width"].as_u64().unwrap(), if panel["as"] == "stat" { 5 } else { 8 });
            if x + width > COLUMNS {
                (x, y, height) = (0, y + height, 0);
            }
            panels.push(render_panel(panel, id, json!({ "x": x, "y": y, "w": width, "h": tall })));
            (x, height) = (x + width, height.max(tall));
        }
        y += height;
    }
    json!({
        "uid": "catchword",
        "title": source["title"],
        "description": "Is search in step with Postgres, how far behind, since when, and why?",
        "tags": ["catchword"],
        "schemaVersion": 39,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": { "from": "now-3h", "to": "now" },
        "templating": { "list": [
            { "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": { "text": "default", "value": "default" }, "hide": 0 },
            variable("installation", "label_values(catchword_build_info, installation)"),
            variable("collection", "label_values(catchword_jobs{installation=~\"$installation\"}, collection)"),
        ] },
        "annotations": { "list": [{
            "name": "Alarms",
            "enable": true,
            "iconColor": "red",
            "datasource": datasource(),
            "expr": expand("ALERTS{$here, alertname=~\"Catchword.*\", alertstate=\"firing\"}"),
            "titleFormat": "{{alertname}}",
            "textFormat": "{{collection}}",
        }] },
        "panels": panels,
    })
}

fn render_panel(panel: &Value, id: u64, place: Value) -> Value {
    let stat = panel["as"] == "stat";
    let targets: Vec<Value> = (b'A'..)
        .zip(panel["queries"].as_array().unwrap())
        .map(|(letter, query)| {
            json!({
                "refId": char::from(letter).to_string(),
                "datasource": datasource(),
                "expr": expand(query["expr"].as_str().unwrap()),
                "legendFormat": query["legend"].as_str().unwrap_or(panel["title"].as_str().unwrap()),
                "instant": stat,
                "range": !stat,
            })
        })
        .collect();
    let steps = match panel.get("bad") {
        Some(bad) => json!([{ "color": "green", "value": null }, { "color": "red", "value": bad }]),
        None => json!([{ "color": "green", "value": null }]),
    };
    let mappings = match panel.get("words") {
        Some(words) => {
            json!([{ "type": "value", "options": words.as_object().unwrap().iter().map(|(n, word)| (n.clone(), json!({ "text": word }))).collect::<serde_json::Map<_, _>>() }])
        }
        None => json!([]),
    };
    let mut defaults =
        json!({ "unit": panel["unit"], "min": 0, "thresholds": { "mode": "absolute", "steps": steps }, "mappings": mappings });
    let options = if stat {
        json!({ "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false }, "colorMode": "value", "graphMode": "none", "textMode": "auto" })
    } else {
        let line = if panel.get("bad").is_some() { "dashed" } else { "off" };
        defaults["custom"] =
            json!({ "lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false, "thresholdsStyle": { "mode": line } });
        json!({ "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true }, "tooltip": { "mode": "multi", "sort": "desc" } })
    };
    let mut made = json!({
        "id": id,
        "type": if stat { "stat" } else { "timeseries" },
        "title": panel["title"],
        "description": panel["about"],
        "datasource": datasource(),
        "gridPos": place,
        "targets": targets,
        "fieldConfig": { "defaults": defaults, "overrides": [] },
        "options": options,
    });
    if let Some(over) = panel.get("over") {
        made["timeFrom"] = over.clone();
    }
    made
}

fn variable(name: &str, query: &str) -> Value {
    json!({
        "name": name,
        "type": "query",
        "datasource": datasource(),
        "query": { "query": query, "refId": name },
        "definition": query,
        "refresh": 2,
        "multi": true,
        "includeAll": true,
        // also series that lack the label
        "allValue": ".*",
        "current": { "text": ["All"], "value": ["$__all"] },
        "hide": 0,
    })
}

fn datasource() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn expand(expression: &str) -> String {
    expression
        .replace("$these", "installation=~\"$installation\", collection=~\"$collection\"")
        .replace("$here", "installation=~\"$installation\"")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
