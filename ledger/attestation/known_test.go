package attestation

import (
	"slices"
	"testing"
)

func TestKnown(t *testing.T) {
	for uri, want := range map[string]struct {
		predicates string
		outcome    bool
	}{
		ResultPredicateType: {"*", true},
		"https://in-toto.io/attestation/test-result/v0.1": {"test:*", true},
		"https://in-toto.io/attestation/link/v0.3":        {"run:*", true},
		"https://slsa.dev/provenance/v1":                  {"build:*", true},
		"https://slsa.dev/verification_summary/v1":        {"vsa:*", true},
		"https://in-toto.io/attestation/vulns/v0.2":       {"scan:*", false},
		"https://spdx.dev/Document":                       {"sbom:spdx", false},
		"https://spdx.dev/Document/v2.3":                  {"sbom:spdx", false},
		"https://example.com/release/v1":                  {"https://example.com/release/v1", false},
	} {
		if predicates, outcome := Known(uri); predicates != want.predicates || outcome != want.outcome {
			t.Errorf("%s: %s, %t, want %v", uri, predicates, outcome, want)
		}
	}

	recorded := RecordedPredicates()
	for _, p := range []string{"run:*", "scan:*", "sbom:spdx", "sbom:cyclonedx"} {
		if !slices.Contains(recorded, p) {
			t.Errorf("%q lacks %s", recorded, p)
		}
	}
	for _, p := range []string{"*", "test:*", "build:*", "vsa:*"} {
		if slices.Contains(recorded, p) {
			t.Errorf("%q has %s", recorded, p)
		}
	}
}
