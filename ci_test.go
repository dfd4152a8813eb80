package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ledgerd/ledgerd/internal/must"
)

// TestWorkflowRunsEveryStep checks that the workflow's jobs run each step of .ci/run exactly once, and
// of '.ci/run full' at night.
func TestWorkflowRunsEveryStep(t *testing.T) {
	script := must.Read(t, ".ci/run")
	list := regexp.MustCompile(`(?m)^steps=\((.+)\)\nfull_steps=\("\$\{steps\[@\]\}" (.+)\)$`).FindSubmatch(script)
	if list == nil {
		t.Fatal(".ci/run has no lists of steps")
	}

	text := must.Read(t, ".github/workflows/ci.yaml")
	var workflow struct {
		Jobs struct {
			CI struct {
				Strategy struct {
					Matrix struct {
						Include []struct {
							Job, Steps string
							Nightly    bool
						}
					}
				}
			}
		}
	}
	must.OK(t, yaml.Unmarshal(text, &workflow))

	steps := make(map[bool][]string) // by whether they run only at night
	for _, job := range workflow.Jobs.CI.Strategy.Matrix.Include {
		steps[job.Nightly] = append(steps[job.Nightly], strings.Fields(job.Steps)...)
	}
	for nightly, want := range map[bool][]string{
		false: strings.Fields(string(list[1])), true: strings.Fields(string(list[2])),
	} {
		run := slices.Sorted(slices.Values(steps[nightly]))
		slices.Sort(want)
		if !slices.Equal(run, want) {
			t.Errorf("the workflow runs %q, .ci/run has %q (only at night: %t)", run, want, nightly)
		}
	}
}

// TestLintIncludesVet checks that the linter runs all analyzers of go vet, since no
// step of .ci/run runs go vet by default.
func TestLintIncludesVet(t *testing.T) {
	text := must.Read(t, ".golangci.yaml")
	var config struct {
		Linters struct {
			Enable     []string
			Settings   map[string]any
			Exclusions struct {
				Rules []struct{ Linters []string }
			}
		}
	}
	must.OK(t, yaml.Unmarshal(text, &config))

	if !slices.Contains(config.Linters.Enable, "govet") {
		t.Error("govet is not enabled")
	}
	if settings := config.Linters.Settings["govet"]; settings != nil {
		t.Errorf("govet has settings, which may disable analyzers: %v", settings)
	}
	for _, rule := range config.Linters.Exclusions.Rules {
		if len(rule.Linters) == 0 || slices.Contains(rule.Linters, "govet") {
			t.Errorf("a rule excludes reports of govet: %v", rule)
		}
	}
}
