use chrono::TimeZone;

use super::*;

fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 17, 12, 0, 0).unwrap()
}

fn minute(at: DateTime<Utc>, due: i64) -> Minute {
    Minute {
        at,
        scheduled: 0,
        settled: due,
        written: 0,
        pushed_back: 0,
        buried: 0,
        due,
        waiting: 0,
        oldest_seconds: None,
        fresh_p50: Some(0.04),
        fresh_p99: Some(due as f64),
    }
}

fn graph(shape: Shape, values: Vec<Option<f64>>) -> Graph<'static> {
    Graph { title: "queue <of> \"x\"", unit: "jobs", shape, values, end: noon() }
}

#[test]
fn every_minute_has_its_place_and_others_have_none() {
    let ago = |minutes| noon() - Duration::minutes(minutes);
    let minutes = [minute(ago(90), 9), minute(ago(4), 4), minute(ago(2) + Duration::seconds(3), 2), minute(noon(), 1), minute(ago(-1), 8)];
    let found: Vec<Option<i64>> = places(&minutes, noon(), 5).iter().map(|place| place.map(|minute| minute.due)).collect();
    assert_eq!(found, [Some(4), None, Some(2), None, Some(1)]);
}

#[test]
fn the_last_minute_is_the_one_before_this_one_or_what_was_written_down() {
    let now = noon() + Duration::seconds(30);
    assert_eq!(last_minute(&[], now), noon() - Duration::minutes(1));
    assert_eq!(last_minute(&[minute(noon() - Duration::minutes(9), 1)], now), noon() - Duration::minutes(1));
    assert_eq!(last_minute(&[minute(noon(), 1)], now), noon());
}

#[test]
fn an_axis_ends_at_a_round_number_whose_half_is_round() {
    for (most, top) in [(0.0, 2.0), (1.0, 2.0), (3.0, 4.0), (7.0, 8.0), (11.0, 20.0), (43.0, 60.0), (1_200.0, 2_000.0), (8_001.0, 10_000.0)]
    {
        assert_eq!(round_top(most), top);
    }
    let labels: Vec<String> = [0.0, 5.0, 2_000.0, 40_000.0, 1_500_000.0].into_iter().map(short).collect();
    assert_eq!(labels, ["0", "5", "2,000", "40k", "1.5M"]);
}

#[test]
fn a_minute_without_a_worker_is_a_gap_and_no_zero() {
    let mut values = vec![Some(3.0); 30];
    values[10..20].fill(None);
    let svg = graph(Shape::Level, values).svg();
    assert_eq!(svg.matches("class=\"line\"").count(), 2);
    assert_eq!(svg.matches("class=\"gap\"").count(), 1);
    assert!(svg.contains(">no worker<"));
    // nothing is told of the gap under the pointer
    assert_eq!(svg.matches("<title>").count(), 20);
}

#[test]
fn a_minute_alone_is_seen() {
    let mut values = vec![None; 30];
    values[5] = Some(2.0);
    assert_eq!(graph(Shape::Level, values).svg().matches("class=\"dot\"").count(), 1);
}

#[test]
fn work_is_a_bar_for_each_minute_in_which_something_was_done() {
    let svg = graph(Shape::Work, vec![Some(0.0), Some(1_000_000.0), Some(1.0), None]).svg();
    assert_eq!(svg.matches("class=\"bar\"").count(), 2);
    // one in a million is a line of its own, not nothing
    assert!(svg.contains("height=\"1.0\""), "{svg}");
}

#[test]
fn times_are_round_and_few() {
    let svg = graph(Shape::Level, vec![Some(1.0); 30]).svg();
    let times: Vec<&str> = svg.split("class=\"time\"").skip(1).filter_map(|rest| rest.split('>').nth(1)?.split('<').next()).collect();
    assert_eq!(times, ["11:40", "11:50"]);
    let svg = graph(Shape::Level, vec![Some(1.0); 180]).svg();
    assert_eq!(svg.matches("class=\"time\"").count(), 5);
    assert!(svg.matches("<title>").count() <= SPOTS);
}

#[test]
fn nothing_in_a_picture_ends_it() {
    let svg = graph(Shape::Level, vec![Some(1.0)]).svg();
    assert!(svg.contains("queue &lt;of&gt; &quot;x&quot;: now 1, at most 1"), "{svg}");
    // the stylesheet has the colours: an attribute `style` would be refused by the page's own policy
    assert!(!svg.contains("style="));
}

#[test]
fn nothing_at_all_is_a_picture_too() {
    let graph = graph(Shape::Level, vec![None; 30]);
    assert_eq!(graph.caption(), "no worker has written anything down in this time");
    assert!(graph.svg().ends_with("</svg>"));
    assert!(Graph { values: Vec::new(), ..graph }.svg().ends_with("</svg>"));
}

#[test]
fn a_late_minute_stands_out_in_the_small_picture() {
    let (fresh, late) = (minute(noon(), 1), minute(noon(), 300));
    let svg = sparkline(&[Some(&fresh), None, Some(&late)], 60.0, "fresh");
    assert_eq!((svg.matches("class=\"bar\"").count(), svg.matches("class=\"late\"").count()), (1, 1));
    assert_eq!(svg.matches("class=\"axis\"").count(), 2);
    assert!(on_a_scale_of_tens(0.04) < on_a_scale_of_tens(0.9) && on_a_scale_of_tens(1e9) == 1.0);
}
