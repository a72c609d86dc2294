# `make` lists the targets. They need Go and make; a target that needs more fetches
# it through the Go proxy, apt or npm. CONTRIBUTING.md explains each target.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO            ?= go
TESTRUN       := $(GO) run ./internal/testrun
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS       := -s -w -X main.version=$(VERSION)
GOLANGCI      := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
NFPM          := $(GO) run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.44.1
ACTIONLINT    := $(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GORELEASER    ?= $(GO) run github.com/goreleaser/goreleaser/v2@v2.13.3
FUZZTIME      ?= 10s
BENCH         ?= .
BENCHTIME     ?= 1s

export CGO_ENABLED ?= 0
# With -trimpath the build cache does not depend on the directory: a fresh clone finds
# what another one has compiled.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
# What the tests of clients download and build, kept for other clones of this machine.
export GUIDON_E2E_WORK ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/guidon-e2e

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/guidon with the console; without npm, bin/guidon without it
	@./console/build --optional
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/guidon ./cmd/guidon

.PHONY: console
console: ## Build the console into core/console/dist (needs npm; installs it with apt if it can)
	./console/build

.PHONY: console-check
console-check: ## Check types, style and pure parts of the console
	./console/build
	cd console && npm run --silent check

.PHONY: run
run: build ## Serve on 127.0.0.1:8000 with everything under ./data
	./bin/guidon serve --config guidon.example.yaml

# The server that the tests start, without a look at the console's sources.
.PHONY: binary
binary:
	@$(GO) build -ldflags '$(LDFLAGS)' -o bin/guidon ./cmd/guidon

# The tests of cmd/guidon as a program, which the targets of single faults share.
.PHONY: test-binary
test-binary: binary
	@$(GO) test -c -vet=off -o bin/guidon.test ./cmd/guidon

COMMAND_TESTS := cd cmd/guidon && GUIDON_TEST_BINARY=$(CURDIR)/bin/guidon

.PHONY: quick
quick: ## Test the packages that differ from BASE (default: what is not committed, or the last commit) and their direct importers, on SQLite
	@./.ci/quick $(BASE)

.PHONY: test
test: postgres curl binary ## Run the tests of all packages on SQLite and Postgres (installs Postgres and curl with apt if it can)
	@GUIDON_TEST_BINARY=$(CURDIR)/bin/guidon $(TESTRUN) -- -vet=off -timeout 60m ./...

.PHONY: test-long
test-long: postgres curl binary ## Run the tests that make test leaves out: guides that build modules, storms, moves between stores
	@GUIDON_TEST_BINARY=$(CURDIR)/bin/guidon ./.ci/test-long

.PHONY: test-sqlite
test-sqlite: curl binary ## Run the tests on SQLite only, for machines without Postgres
	@GUIDON_TEST_POSTGRES=none GUIDON_TEST_BINARY=$(CURDIR)/bin/guidon $(TESTRUN) -- -vet=off -timeout 60m ./...
	@echo 'NOT TESTED on Postgres: a change needs make test'

.PHONY: steady
steady: postgres $(if $(RACE),compiler) ## Run tests TIMES (default 10) times under load (PKG=./core/journal RUN=TestName RACE=1); new and changed tests pass this before they land
	@./.ci/steady $${PKG:?names a package, as in PKG=./core/journal} "$(or $(RUN),.)" $(or $(TIMES),10)

.PHONY: prove
prove: ## Run the long form of every proof, for hours, and print a table of what ran with its seed (ONLY="crash fuzz" runs some; SEED=n repeats a run)
	@./.ci/prove $(ONLY)

.PHONY: bare
bare: ## Run make run and make test on a Debian with nothing but git, make, CA certificates and Go, as root and as a user (needs root)
	@./.ci/bare

# SQLite is C translated to Go. The race detector would watch each of its memory accesses,
# at four times the processor time of a test, to find races that are not in our code. No
# other package may be left out: the linker would take its copies of generic functions of
# sync for all, and without them the detector reports races that do not exist.
export RACE_FLAGS := -race -gcflags=modernc.org/sqlite/lib=-race=false

.PHONY: race
race: postgres compiler ## Run the tests of packages with concurrency with the race detector, each on one database (needs a C compiler)
	@packages="$$(./.ci/race-packages)"; CGO_ENABLED=1 $(TESTRUN) -- $(RACE_FLAGS) -vet=off -short -timeout 60m $$packages

.PHONY: race-long
race-long: postgres compiler ## Run the tests of the same packages with the race detector, in full and on both databases
	@packages="$$(./.ci/race-packages)"; CGO_ENABLED=1 $(TESTRUN) -- $(RACE_FLAGS) -vet=off -timeout 120m $$packages

.PHONY: lint
lint: docs-check workflows-check ## Check the format, run golangci-lint with go vet's checks, check documents and workflows
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; if [ -n "$$unformatted" ]; then echo "gofmt these: $$unformatted"; exit 1; fi
	$(GOLANGCI) run

.PHONY: docs-check
docs-check: ## Check that links, paths, tests, log messages and targets named in documents exist
	$(GO) run ./internal/docscheck

.PHONY: workflows-check
workflows-check: ## Check .github/workflows with actionlint
	$(ACTIONLINT) -shellcheck= -pyflakes= .github/workflows/*.yml

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (default 10s) each
	./.ci/fuzz $(FUZZTIME)

.PHONY: fuzz-changed
fuzz-changed: ## Run the eight fuzz targets whose packages changed last for 5 seconds each
	./.ci/fuzz 5s 8

.PHONY: bench
bench: ## Run the benchmarks (BENCH=regexp, BENCHTIME=1s)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 60m ./...

.PHONY: bench-cluster
bench-cluster: build postgres ## Measure CPU an event and answers of one and many nodes on Kafka and Postgres in ROUNDS (default 3) rounds (VARIANTS="local kafka-1x12 kafka-3x12", LOADS="batches idle", EVENTS=60000)
	COST_ROUNDS=$${ROUNDS:-3} COST_VARIANTS="$${VARIANTS:-}" COST_LOADS="$${LOADS:-}" COST_EVENTS=$${EVENTS:-} ./e2e/run -run 'TestCost$$' -v -timeout 5h

.PHONY: bench-console
bench-console: build ## Measure the pages of the console with PERSONS (default 1000000) persons, FLAGS (5000) flags and EVENTS (500) events a second
	SCALE_PERSONS=$${PERSONS:-1000000} SCALE_FLAGS=$${FLAGS:-} SCALE_EVENTS=$${EVENTS:-} ./e2e/run -run 'TestConsoleScale$$' -v -timeout 2h

.PHONY: console-budget
console-budget: build ## Compare first paint and processor time of the pages of the console with their limits, on a machine at rest
	GUIDON_TEST_LONG=1 CONSOLE_BUDGET=1 ./e2e/run -run 'TestConsoleBudget$$' -v

.PHONY: bench-takeover
bench-takeover: build postgres ## Measure ROUNDS (default 5) times how long partitions have no owner after a kill and after SIGTERM
	TAKEOVER_ROUNDS=$${ROUNDS:-5} COST_VARIANTS="$${VARIANTS:-}" ./e2e/run -run 'TestTakeoverTime$$' -v -timeout 1h

.PHONY: e2e
e2e: build clickhouse postgres ## Test with unmodified clients, the OpenAPI document and real destinations of sinks
	@GUIDON_TEST_BINARY=$(CURDIR)/bin/guidon $(TESTRUN) -- -tags e2e -vet=off -count=1 -timeout 30m ./plugins/sink/clickhouse ./plugins/sink/nats ./core/events ./core/events/clickhouse
	@GUIDON_TEST_BINARY=$(CURDIR)/bin/guidon $(TESTRUN) -- -tags e2e -vet=off -count=1 -timeout 30m -run ClickHouse ./cmd/guidon ./app
	./e2e/run

.PHONY: e2e-long
e2e-long: export GUIDON_TEST_LONG = 1
e2e-long: e2e ## Test with clients of all ages and every destination under kill, too

.PHONY: crash
crash: test-binary ## Kill the server under load ROUNDS times (default 20) and check for lost events
	$(COMMAND_TESTS) GUIDON_CRASH_ROUNDS=$${ROUNDS:-20} ../../bin/guidon.test -test.run 'TestKillUnderLoad$$' -test.timeout 80m -test.v

.PHONY: mutants
mutants: ## Run the tests of PKG (core/flags/eval) against SAMPLE (default 80, 0 is all) small changes of its code and list those that no test notices (ARGS="-seed 2 -only update.go")
	$(GO) run ./internal/mutants -sample $${SAMPLE:-80} $${ARGS:-} $${PKG:?names packages, as in PKG=core/flags/eval}

.PHONY: simulate
simulate: ## Simulate ROUNDS (default 1000) random runs of worker, sinks and leases in virtual time (GUIDON_SEED=n repeats one)
	GUIDON_SEEDS=$${ROUNDS:-1000} $(GO) test ./core/simulation -count=1 -timeout 80m

.PHONY: cluster-chaos
cluster-chaos: build clickhouse postgres ## Kill, stop and cut off nodes, Kafka, Postgres and ClickHouse under load in ROUNDS (default 1) rounds of EVENTS (200000) with FAULTS (28) faults and check for lost events (SEED=n repeats one, LOG=postgres, STORE=clickhouse and ERASE=1 give all of them the log in Postgres, events in ClickHouse, erased persons)
	CHAOS_ROUNDS=$${ROUNDS:-1} CHAOS_SEED=$${SEED:-} CHAOS_EVENTS=$${EVENTS:-} CHAOS_FAULTS=$${FAULTS:-} CHAOS_LOG=$${LOG:-} CHAOS_STORE=$${STORE:-} CHAOS_ERASE=$${ERASE:-} ./e2e/run -run 'TestClusterChaos$$|TestBadClocks$$' -v -timeout 20h

.PHONY: powercut
powercut: test-binary ## Cut the power under load ROUNDS times (default 20; POWERCUT_SEED=1 selects what is lost; Linux, root, FUSE) and check for lost events
	$(COMMAND_TESTS) POWERCUT_ROUNDS=$${ROUNDS:-20} ../../bin/guidon.test -test.run 'TestPowerCut$$' -test.timeout 80m -test.v

.PHONY: damage
damage: ## Damage the files of a killed server with SEEDS (default 200) seeds and account for each event
	GUIDON_DAMAGE_SEEDS=$${SEEDS:-200} $(GO) test -run "TestDamage$$|TestDamagedDatabase$$" -count=1 -timeout 20m ./core/recovery ./app

.PHONY: misbehave
misbehave: test-binary ## Run PLUGINS (default 100) misbehaving plugins beside a good sink (STORM_SEED=1 selects them)
	$(COMMAND_TESTS) STORM_MISBEHAVIOURS=$${PLUGINS:-100} ../../bin/guidon.test -test.run 'TestMisbehaviours$$' -test.timeout 60m -test.v

.PHONY: upgrades
upgrades: test-binary ## Replace the executable of sinks SWAPS times (default 100) while events arrive (STORM_SEED=1 selects them)
	$(COMMAND_TESTS) STORM_UPGRADES=$${SWAPS:-100} ../../bin/guidon.test -test.run 'TestUpgradeStorm$$' -test.timeout 60m -test.v

.PHONY: hostile
hostile: test-binary ## Send REQUESTS (default 100000) hostile requests and check answers and memory
	$(COMMAND_TESTS) HOSTILE_REQUESTS=$${REQUESTS:-100000} ../../bin/guidon.test -test.run 'TestHostileRequests' -test.timeout 10h -test.v

.PHONY: memory
memory: test-binary ## Load servers that the kernel kills above a limit of memory, SECONDS_EACH (default 10) each (Linux), and check for lost events
	$(COMMAND_TESTS) MEMORY_SECONDS=$${SECONDS_EACH:-10} ../../bin/guidon.test -test.run 'TestMemoryLimit$$' -test.timeout 60m -test.v

.PHONY: soak
soak: ## Load the journal for ten minutes and check that its files do not grow
	$(GO) test ./core/journal -run 'TestSpaceStaysFlat$$' -soak=10m -timeout 20m -v

.PHONY: deb
deb: console binary ## Build the Debian package dist/guidon_VERSION_ARCH.deb
	@rm -rf dist && mkdir dist
	cp bin/guidon dist/guidon
	./packaging/generate dist/guidon .cache/package
	VERSION="$$(packaging/debian/version '$(VERSION)')" ARCH=$$($(GO) env GOARCH) $(NFPM) package --config packaging/debian/nfpm.yaml --packager deb --target dist/

.PHONY: packages
packages: deb ## Install the Debian package, serve with it and remove it (needs root)
	@./e2e/need 'systemd-analyze --version' systemd
	./packaging/debian/try

.PHONY: release-dry-run
release-dry-run: console ## Build archives, Debian packages, checksums and bills of materials in dist/, without signing
	$(GORELEASER) check
	$(GORELEASER) release --snapshot --clean --skip=sign,publish,announce,validate
	cd dist && sha256sum --check --quiet SHA256SUMS
	./packaging/release-notes >dist/release-notes.md

.PHONY: release
release: ## Build, sign and upload a draft of the release of the tag (.github/workflows/release.yml does it)
	@mkdir -p .cache
	./packaging/release-notes '$(VERSION)' >.cache/release-notes.md
	$(GORELEASER) release --clean --release-notes .cache/release-notes.md

.PHONY: generate
generate: ## Regenerate sdk/pb, sdk/python, docs/plugins/catalogue.md and THIRD_PARTY_NOTICES
	$(GO) generate ./...
	@./e2e/need 'python3 -c "import ensurepip, venv"' python3 python3-venv
	./sdk/python/generate

.PHONY: generated
generated: generate ## Fail if generated files are not up to date
	@git diff --exit-code -- sdk/pb sdk/python docs/plugins/catalogue.md THIRD_PARTY_NOTICES || { echo "generated code is stale: run make generate and commit"; exit 1; }

.PHONY: api
api: ## Check that SDK and plugin contract are compatible with the last release
	./.ci/api

# The targets below install what the tests need; they are not listed by `make`.
.PHONY: postgres
postgres:
	@./.ci/need-postgres

.PHONY: clickhouse
clickhouse:
	@./.ci/need-clickhouse

.PHONY: curl
curl:
	@./e2e/need 'curl --version' curl

.PHONY: compiler
compiler:
	@./e2e/need 'gcc --version' gcc libc6-dev
