# Every target does its own set-up: `make test` is all that a fresh machine needs.
.DEFAULT_GOAL := help
.PHONY: help services stop test test-long test-faults test-alarms test-api test-console test-matrix print-long lint demo bench console-pictures

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

services: ## start a real Postgres and a real Elasticsearch, wait until they answer
	@scripts/services up

stop: ## end the servers that were started here, keep their data
	@scripts/services down

# The servers stay up afterwards: idle they cost little, and the next run starts at once. A test waits for servers most of its time,
# so more run at once than there are cores. The last builds this workspace's crates once more, with the feature that lets a test end
# a process at chosen places: each place once here, and without the feature first, so that tests/all/repo/release.rs sees what users get.
test: ## run all tests but the long ones and those in a browser; starts the servers and leaves them running
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && RUST_TEST_THREADS=$${RUST_TEST_THREADS:-6} cargo test --locked --workspace -- --skip=in_browser:: $(addprefix --skip=,$(LONG))
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
	operate::logins::every_login_works_on_a_server_that_takes_nobody_else_and_no_secret_is_printed \
	pass::overload::a_full_write_queue_halves_the_batches_and_charges_nobody \
	pass::related::touches_that_fail_or_never_end_keep_no_live_write_waiting \
	pass::simulator::without_any_one_rule_something_goes_wrong \
	rebuild::in_a_row::rebuilds_in_a_row_under_writes_lose_nothing_whoever_is_killed \
	rebuild::refused::a_cluster_without_room_for_two \
	servers::hosts::of_several_hosts_the_one_that_can_be_written_to_is_used_and_after_a_failover_the_other

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

# `make test` does the same for some seconds.
test-api: ## ask the API whatever its description allows and forbids, for some minutes
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && CATCHWORD_API_EXAMPLES=$${CATCHWORD_API_EXAMPLES:-100} cargo test --locked --package catchword --test all -- --nocapture serve::described::

# A browser takes a core of its own.
test-console: ## drive the console in a real Chromium
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && RUST_TEST_THREADS=$${RUST_TEST_THREADS:-2} cargo test --locked --package catchword --test all -- in_browser::

# Servers of their own, one pair at a time: an hour on two cores. docs/servers.md gets the table.
test-matrix: ## run the tests on Postgres 14 to 18, each with an engine; ONLY=14 for one of them, REDUCED=1 for what servers answer differently
	@ONLY="$(ONLY)" scripts/matrix $(if $(REDUCED),--reduced)

# for scripts/matrix
print-long:
	@echo $(LONG)

lint: ## check format, lints and documentation; every warning is an error
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked --workspace --features crash-points --test crash -- -D warnings
	cargo clippy --locked --package catchword --lib --bins -- -D warnings
	cargo clippy --locked --package catchword --lib --no-default-features -- -D warnings
	cargo clippy --locked --package annotations -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --document-private-items

demo: ## show it at work; FAST=1 for the short version, KEEP=1 keeps the console open at the end
	@FAST=$(FAST) KEEP=$(KEEP) scripts/demo

# A real Chromium takes them; the same test looks at every page for what does not fit or is hard to read.
console-pictures: ## take the pictures of docs/console again
	@scripts/services tools
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && CATCHWORD_PICTURES=docs/console cargo test --locked --package catchword --test all -- --exact in_browser::pictures::every_page_fits_a_desk_and_a_phone_in_light_and_in_dark

# The figures of docs/benchmarks.md. `make test` runs each with a handful of rows.
bench: ## measure it against the limits; QUICK=1 for three minutes, ONLY=1,2 for some figures
	@scripts/services up
	@env=$$(scripts/services env) && eval "$$env" && cargo bench --locked --bench figures -- $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
