# Shortcuts for common tasks. 'make' lists them.
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  \1:\2/p' $(MAKEFILE_LIST) | awk -F: '{ printf "%-12s %s\n", $$1, $$2 }'

.PHONY: demo
demo: ## run a demo server on a temporary database
	go run . demo

.PHONY: build
build: ## build ./ledgerd
	CGO_ENABLED=0 go build -trimpath -o ledgerd .

.PHONY: install
install: ## install ledgerd in 'go env GOBIN'
	CGO_ENABLED=0 go install -trimpath .

.PHONY: test
test: ## run all tests, except those whose programs are missing
	go test ./...

.PHONY: e2e
e2e: ## run the end-to-end tests (on Debian, install the programs they need)
	.ci/run e2e

.PHONY: faults
faults: ## kill, stop, fill and break a server under load, for 10 minutes
	LEDGERD_TEST_LEVEL=full go test ./e2e/fault -count=1 -v -timeout=30m

.PHONY: race
race: ## run the tests with the race detector
	.ci/run race

.PHONY: fuzz
fuzz: ## run each fuzz test with random inputs
	.ci/run fuzz

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w .

.PHONY: lint
lint: ## check formatting, go.mod and code
	.ci/run gofmt mod_tidy lint

.PHONY: vuln
vuln: ## check for known vulnerabilities
	.ci/run govulncheck

.PHONY: bench
bench: ## measure recording and reading on this machine
	go run ./e2e/bench

.PHONY: ci
ci: ## run all checks of CI
	.ci/run
