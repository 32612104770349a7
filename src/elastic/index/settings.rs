//! Which settings an index that is there can take.

/// Settings that can be changed while an index is in use, by their whole names; one that ends with a dot stands for all that begin so.
/// The others hold for the life of an index. One that is not listed here counts as such: then a rebuild is advised, which is never wrong.
const CHANGEABLE: [&str; 40] = [
    "index.analyze.max_token_count",
    "index.auto_expand_replicas",
    "index.blocks.",
    "index.gc_deletes",
    "index.hidden",
    "index.highlight.",
    "index.indexing.slowlog.",
    "index.lifecycle.",
    "index.mapping.depth.limit",
    "index.mapping.dimension_fields.limit",
    "index.mapping.field_name_length.limit",
    "index.mapping.nested_fields.limit",
    "index.mapping.nested_objects.limit",
    "index.mapping.total_fields.",
    "index.max_docvalue_fields_search",
    "index.max_inner_result_window",
    "index.max_ngram_diff",
    "index.max_refresh_listeners",
    "index.max_regex_length",
    "index.max_rescore_window",
    "index.max_result_window",
    "index.max_script_fields",
    "index.max_shingle_diff",
    "index.max_slices_per_",
    "index.max_terms_count",
    "index.merge.policy.",
    "index.merge.scheduler.",
    "index.number_of_replicas",
    "index.priority",
    "index.query.default_field",
    "index.refresh_interval",
    "index.requests.cache.enable",
    "index.routing.allocation.",
    "index.routing.rebalance.enable",
    "index.search.",
    "index.soft_deletes.retention",
    "index.translog.",
    "index.unassigned.node_left.delayed_timeout",
    "index.warmer.enabled",
    "index.write.wait_for_active_shards",
];

/// Can an index that is there take another value of this setting?
pub(super) fn is_changeable(name: &str) -> bool {
    CHANGEABLE
        .iter()
        .any(|known| *known == name || (known.ends_with(['.', '_']) && name.starts_with(known)) || name.starts_with(&format!("{known}.")))
}

#[cfg(test)]
mod tests {
    use super::is_changeable;

    #[test]
    fn what_holds_for_the_life_of_an_index_is_not_changeable() {
        for name in [
            "index.refresh_interval",
            "index.merge.policy.segments_per_tier",
            "index.mapping.total_fields.limit",
            "index.search.idle.after",
            "index.max_slices_per_pit",
        ] {
            assert!(is_changeable(name), "{name}");
        }
        for name in [
            "index.number_of_shards",
            "index.analysis.analyzer.x.type",
            "index.codec",
            "index.sort.field",
            "index.knn",
            "index.mapping.source.mode",
            "index.similarity.default.type",
        ] {
            assert!(!is_changeable(name), "{name}");
        }
    }
}
