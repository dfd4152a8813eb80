# What people do, by name. 'make' lists it.
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  \1:\2/p' $(MAKEFILE_LIST) | awk -F: '{ printf "%-12s %s\n", $$1, $$2 }'

.PHONY: demo
demo: ## start a demo server on a throw-away database
	go run . demo

.PHONY: build
build: ## build ./ledgerd
	CGO_ENABLED=0 go build -trimpath -o ledgerd .

.PHONY: install
install: ## install ledgerd into go env GOBIN
	CGO_ENABLED=0 go install -trimpath .

.PHONY: test
test: ## run all tests that this machine has the programs for
	go test ./...

.PHONY: e2e
e2e: ## run the end-to-end tests; on Debian, install what they need
	.ci/run e2e

.PHONY: race
race: ## run the tests under the race detector
	.ci/run race

.PHONY: fuzz
fuzz: ## run each fuzz test for a while
	.ci/run fuzz

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w .

.PHONY: lint
lint: ## check format, go.mod and code
	.ci/run gofmt mod_tidy vet lint

.PHONY: vuln
vuln: ## look for known vulnerabilities
	.ci/run govulncheck

.PHONY: bench
bench: ## measure the whole program
	go run . bench

.PHONY: ci
ci: ## run everything that CI checks
	.ci/run
