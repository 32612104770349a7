# Every target does its own set-up: `make test` is all that a fresh machine needs.
.DEFAULT_GOAL := help
.PHONY: help services stop test test-long test-faults test-alarms lint demo bench

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

services: ## start a real Postgres and a real Elasticsearch, wait until they answer
	@scripts/services up

stop: ## end the servers that were started here, keep their data
	@scripts/services down

# The servers stay up afterwards: idle they cost little, and the next run starts at once. A test waits for servers most of its time,
# so more run at once than there are cores. The last builds this workspace's crates once more, with the feature that lets a test end
# a process at chosen places: each place once here, and without the feature first, so that tests/all/repo/release.rs sees what users get.
test: ## run all tests but the long ones; starts the servers and leaves them running
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && RUST_TEST_THREADS=$${RUST_TEST_THREADS:-8} cargo test --locked --workspace -- $(addprefix --skip=,$(LONG))
	@cargo test --locked --quiet --package catchword --lib --no-default-features
	@env=$$(scripts/services env) && eval "$$env" && RUST_TEST_THREADS=$${RUST_TEST_THREADS:-4} cargo test --locked --workspace --features crash-points --test crash
	@FAST=1 scripts/demo

# What starts servers of its own or goes on for minutes: storms, outages, restores.
LONG = \
	attach::properties::without_any_one_trigger_some_sequence_fails \
	direct::freeze::a_frozen_elasticsearch_slows_a_service_by_a_second_and_only_until_the_breaker_opens \
	faults::network::whatever_the_network_does_to_elasticsearch_both_sides_agree_afterwards \
	faults::outage::after_an_outage_two_workers_ask_no_more_than_before \
	faults::restart::delete_then_the_late_insert_stays_deleted_also_after_a_restart_of_elasticsearch \
	faults::restore::a_document_of_150_mb_among_others_costs_the_worker_no_memory \
	faults::restore::a_postgres_that_restarts_under_a_worker_and_direct_writers_loses_nothing \
	faults::restore::a_restore_that_lost_commits_is_overtaken_and_no_number_is_given_twice \
	faults::restore::a_standby_is_refused_and_a_switched_timeline_raises_the_sequence_once \
	faults::workers_killed::a_worker_whose_connections_are_cut_twice_a_second_goes_on \
	faults::workers_killed::workers_killed_at_random_under_writes_lose_nothing \
	pass::overload::a_full_write_queue_halves_the_batches_and_charges_nobody \
	pass::related::touches_that_fail_or_never_end_keep_no_live_write_waiting \
	pass::simulator::without_any_one_rule_something_goes_wrong \
	rebuild::in_a_row::rebuilds_in_a_row_under_writes_lose_nothing_whoever_is_killed \
	rebuild::refused::a_cluster_without_room_for_two

test-long: ## run the long tests
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && RUST_TEST_THREADS=$${RUST_TEST_THREADS:-4} cargo test --locked --package catchword --test all -- --exact $(LONG)

# Times and rates are judged here, so one at a time: nothing else may run on the machine.
test-faults: ## crash every process at every point five times, and long storms, frosts, outages, rebuilds
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && CATCHWORD_REPEAT=$${CATCHWORD_REPEAT:-5} RUST_TEST_THREADS=$${RUST_TEST_THREADS:-4} cargo test --locked --workspace --features crash-points --test crash
	@env=$$(scripts/services env) && eval "$$env" && CATCHWORD_STORM_SECONDS=$${CATCHWORD_STORM_SECONDS:-120} CATCHWORD_FREEZE_SECONDS=$${CATCHWORD_FREEZE_SECONDS:-60} CATCHWORD_ROUNDS=$${CATCHWORD_ROUNDS:-5} CATCHWORD_REBUILDS=$${CATCHWORD_REBUILDS:-20} \
		RUST_TEST_THREADS=1 cargo test --locked --package catchword --test all -- --nocapture --exact \
		faults::workers_killed::workers_killed_at_random_under_writes_lose_nothing \
		direct::freeze::a_frozen_elasticsearch_slows_a_service_by_a_second_and_only_until_the_breaker_opens \
		faults::outage::after_an_outage_two_workers_ask_no_more_than_before \
		rebuild::in_a_row::rebuilds_in_a_row_under_writes_lose_nothing_whoever_is_killed

# `make test` makes some of them fire.
test-alarms: ## make every alarm fire in a real Prometheus
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && CATCHWORD_FAULTS=$${CATCHWORD_FAULTS:-all} cargo test --locked --workspace --test all -- --nocapture watched::

lint: ## check format, lints and documentation; every warning is an error
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --workspace --features crash-points --test crash -- -D warnings
	cargo clippy --locked --package catchword --lib --bins -- -D warnings
	cargo clippy --locked --package catchword --lib --no-default-features -- -D warnings
	cargo clippy --locked --package annotations -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

demo: ## show it at work; FAST=1 for the short version
	@FAST=$(FAST) scripts/demo

# The figures of docs/benchmarks.md. `make test` runs each with a handful of rows.
bench: ## measure it against the limits; QUICK=1 for three minutes, ONLY=1,2 for some figures
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && cargo bench --locked --bench figures -- $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
