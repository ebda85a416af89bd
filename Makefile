SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Compiled as go tool does by hand, not with the flags below, so that a machine has each tool once.
LINT      := $$(GOFLAGS= CGO_ENABLED= go tool -modfile=tools/go.mod -n golangci-lint)
BENCHSTAT := go tool -modfile=tools/go.mod benchstat

# Which benchmarks run, and how often each.
BENCH    ?= .
COUNT    ?= 6
# Packages of check and test.
PKG      ?= ./...
# Three groups of packages run without the race detector (ADR 0046); make test-long runs them with it.
# QUIET start no goroutine and share no memory, and their tests need no server: make test runs them as make check does.
QUIET    := . ./number ./internal/answers ./internal/audit ./internal/config ./internal/idtime ./internal/jsonpost \
	./internal/requestid ./internal/server/admin ./internal/server/problem ./internal/spread ./internal/takeover
# PARTLY leave some tests to it (long.Plain), so make test runs their unit tests with the race detector and without.
PARTLY   := ./segment ./snowflake ./worker ./internal/app ./internal/limit ./idlog
# DRIVERS wait for real servers. The tests of driver/sqldb that need none, such as those on SQLite, run with it, too.
DRIVERS  := ./driver/sqldb ./driver/zookeeper ./driver/etcd
# OUTSIDE drives programs from outside, or simulates, which runs one goroutine at a time: the race detector would look
# at the drivers of the tests, and make a seed take ten times as long. Most tests of internal/cli start programs, those
# of the console drive a browser; the tests of internal/app look at the same node with the race detector.
OUTSIDE  := ./internal/test/proof ./internal/cli ./internal/test/chaos ./internal/server/console ./internal/test/... ./internal/sim/... ./bench/... ./deploy/... ./examples/...
# The packages whose tests last longest begin first, so that none of them runs alone at the end.
LONGEST  := ./internal/app ./segment ./client ./worker
# go vet has run in make check, and no test needs the tables of a debugger: linking without them takes a third less.
# Most tests wait for servers and clocks, so more of them run at once than the machine has processors.
QUICKLY  := -vet=off -ldflags=-s -parallel=4
# The race detector leaves out the SQLite library, a translation of C to Go, which takes it three times longer.
RACE     := -race -gcflags=modernc.org/...=-race=false
# A process with the race detector sleeps for a second before it ends, unless it is told not to.
export GORACE ?= atexit_sleep_ms=0
# Everything is compiled as a release is, without cgo and without the path of this folder. So linters, tests, the
# programs that tests build, the release and further clones compile each package once. Only -race needs cgo.
export CGO_ENABLED := 0
export GOFLAGS     := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath

# Tests and their servers write to memory where 8 GB are free and programs may run: in driver/sqldb a third of the
# processor time went into writing to the disk. TMPDIR=/tmp make test writes to the disk.
ROOMY := $(shell grep -qs ' /dev/shm .*noexec' /proc/mounts || df -k --output=avail /dev/shm 2>/dev/null | awk '$$1+0 > 8000000 {print "/dev/shm"}')
check test test-long test-matrix mutants: export TMPDIR ?= $(or $(ROOMY),/tmp)

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/leaf
	go build -o bin/ ./cmd/leaf

.PHONY: release
release: ## The static program and its Debian package, in bin/release
	cd tools/release && go run . -out ../../bin/release

.PHONY: check
check: ## Format, linters, vet, tidy modules, import directions, unit tests; needs no server
	$(LINT) fmt --diff
	$(LINT) run
	go vet ./...
	go mod tidy -diff
	cd tools && go mod tidy -diff
	GOFLAGS= CGO_ENABLED= leafpb/check.sh
	go build -ldflags=-w -o bin/ ./internal/test/cmd/summary
	$(UNIT) $(PKG)

# Packages that make check has tested since their last change are not tested again by the same command.
UNIT := bin/summary -again 3 go test -short $(QUICKLY) -parallel=8 -timeout 3m -json
TEST := bin/summary -again 3 go test $(QUICKLY) -timeout 20m -json

.PHONY: test
ifeq ($(PKG),./...)
test: runners ## All tests on real MariaDB, MySQL, PostgreSQL, ZooKeeper, etcd and Redis clients, engines, protocols and client with the race detector
	$(UNIT) $(QUIET) $(PARTLY)
	bin/withservers -- $(MAKE) --no-print-directory -j3 test-plain test-raced test-release
else
test: runners
	CGO_ENABLED=1 bin/withservers -- $(TEST) $(RACE) $(PKG)
endif

# The tests of test-plain mostly wait, so they run beside the others, and three packages of them at once: with two, the
# machine had nothing else to do for three of the eight minutes.
.PHONY: test-plain test-raced
test-plain:
	$(TEST) -p 3 $(DRIVERS) $(OUTSIDE)

test-raced: export CGO_ENABLED := 1
test-raced:
	$(TEST) $(RACE) $(LONGEST) $(filter-out $(shell go list $(DRIVERS) $(OUTSIDE) $(QUIET)),$(shell go list ./...))
	$(TEST) $(RACE) -short ./driver/sqldb

.PHONY: test-release
test-release: runners ## Build the release twice and compare; install its Debian package; run its container image; render the Helm chart; drive each alert
	for module in tools/release tools/helm tools/rules; do (cd $$module && go mod tidy -diff && go vet .); done
	for module in tools/release tools/helm; do (cd $$module && go test $(QUICKLY) -count=1 .); done
	cd tools/rules && ../../bin/withservers -- ../../bin/summary -again 3 go test $(QUICKLY) -count=1 -parallel=8 -json .

.PHONY: test-kubernetes
test-kubernetes: ## Build a kube-apiserver, and see it take the objects of the Helm chart; needs kubectl and etcd, the first time some minutes
	tools/helm/kubernetes.sh

# What talks to servers: drivers, and the programs and clients that choose one by the environment.
MATRIX := ./driver/... ./client/directory ./examples/embedded ./internal/app ./internal/cli ./internal/server/respd ./internal/test/server

.PHONY: test-matrix
test-matrix: runners ## Drivers on the oldest and newest version of every server; clients in Java; LEAF_ORIGINAL_JAR=leaf.jar, too
	for servers in "-newest mysql" "-newest mysql,mariadb,postgres,zookeeper,etcd,redis" "-newest mysql,valkey -mysql"; do \
		LEAF_TEST_MATRIX=1 bin/withservers $$servers -- bin/summary -again 3 go test -count=1 -timeout 30m -json $(MATRIX); \
	done
	LEAF_TEST_MATRIX=1 bin/withservers -- go test -count=1 -v -timeout 20m ./internal/test/java

.PHONY: test-long
test-long: runners ## The same with the full loads and outages; report in bin/reports
	@mkdir -p bin/reports
	@{ date -u '+%F %T UTC'; uname -srm; grep -m1 'model name' /proc/cpuinfo || true; nproc; go version; \
		git log -1 --format='commit %H'; git status --short; \
		CGO_ENABLED=1 LEAF_LONG=1 bin/withservers -- bin/summary -logs internal/test/proof go test $(RACE) -count=1 -timeout 4h -json $(PKG); \
	} 2>&1 | tee bin/reports/test-long.txt

.PHONY: bench
bench: ## Micro-benchmarks, COUNT rounds of all in turn, and their statistics
	@mkdir -p bin
	@{ uname -srm; grep -m1 'model name' /proc/cpuinfo || true; nproc; go version; git log -1 --format='commit %H'; } > bin/bench.txt
	for round in $$(seq $(COUNT)); do \
		go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 1h ./bench/... | tee -a bin/bench.txt; \
	done
	$(BENCHSTAT) bin/bench.txt

.PHONY: bench-compare
bench-compare: ## HTTP, Redis protocol and gRPC beside bare handlers and a real redis-server; needs wrk, redis-server and redis-benchmark
	go run ./bench/compare

.PHONY: bench-overload
bench-overload: ## One node under 5 times what it can serve, on a slow MariaDB and from stock; fails if a bound does not hold
	go run ./bench/overload

.PHONY: proto
proto: ## Generate the Go code of the gRPC protocol anew
	go tool -modfile=tools/go.mod buf generate

.PHONY: fuzz
fuzz: ## All fuzz targets of PKG, MINUTES in all (10) or FUZZTIME each
	go run ./internal/test/cmd/fuzz $(if $(FUZZTIME),-time $(FUZZTIME),-minutes $(or $(MINUTES),10)) $(PKG)

.PHONY: chaos
chaos: ## Break real servers under real nodes for MINUTES=10; SEED=, TOPOLOGY=, FAULTS=, OUTAGE=; report in OUT=bin/reports
	go run ./internal/test/cmd/chaos -minutes $(or $(MINUTES),10) -outage $(or $(OUTAGE),0) -seed $(or $(SEED),0) \
		-topology "$(TOPOLOGY)" -faults "$(FAULTS)" -out $(or $(OUT),bin/reports)

ENGINES := .,./segment/...,./worker,./snowflake,./internal/alarm

.PHONY: coverage
coverage: ## Functions of the engines with statements that no test reaches, and the share of all that are reached
	@mkdir -p bin
	go test -short -coverpkg=$(ENGINES) -coverprofile=bin/coverage.out . ./segment/... ./worker ./snowflake ./internal/alarm ./driver/memory
	go tool cover -func=bin/coverage.out | awk '$$3 != "100.0%"'

.PHONY: soak
soak: helpers build ## One node at 80 % of its capacity for an hour, 1e9 IDs; QUOTA=0.2 processors; report in bin/reports
	bin/soak -quota $(or $(QUOTA),0) -report bin/reports/soak.txt

.PHONY: sim
sim: helpers ## SEEDS seeds of the simulation (10000), 1000 of them twice; SEED=n shows one
ifdef SEED
	bin/sim -seed $(SEED) -log
else
	@date -u '+%F %T UTC'; uname -srm; grep -m1 'model name' /proc/cpuinfo || true; nproc; go version; git log -1 --format='commit %H'
	time bin/sim -seeds 1000 -twice
	time bin/sim -first 1001 -seeds $(or $(SEEDS),10000)
endif

.PHONY: mutants
mutants: helpers ## Break the code in each way of internal/test/mutants and see it noticed; HUNT (20s) simulated each; report in bin/reports
	@mkdir -p bin/reports
	bin/withservers -- bin/mutants -table bin/reports/mutants.md $(if $(HUNT),-hunt $(HUNT))

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin

.PHONY: runners
runners: # what make test runs tests with
	go build -ldflags=-w -o bin/ ./internal/test/cmd/withservers ./internal/test/cmd/summary

.PHONY: helpers
helpers:
	go build -o bin/ ./internal/test/cmd/...
