package attestation_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// Only the annotation of the ledger's own statements is read, and only if a page may link
// to it.
func TestRunOf(t *testing.T) {
	const own = attestation.ResultPredicateType
	const run = "https://ci.acme.example/runs/7?attempt=2#step:3"
	for _, test := range []struct{ predicateType, predicate, want string }{
		{own, `{"annotations":{"command":"go test","run_url":"` + run + `"}}`, run},
		{own, `{"annotations":{"run_url":"HTTP://CI.acme.example/7"}}`, "http://ci.acme.example/7"},
		{"https://slsa.dev/provenance/v1", `{"annotations":{"run_url":"` + run + `"}}`, ""},
		{own, `{"run_url":"` + run + `"}`, ""},
		{own, `{"annotations":{"RUN_URL":"` + run + `"}}`, ""},
		{own, `{"annotations":{"run_url":7}}`, ""},
		{own, `{"annotations":[]}`, ""},
		{own, `{}`, ""},
		{own, `{"annotations":{"run_url":"javascript:alert(1)"}}`, ""},
		{own, `{"annotations":{"run_url":" javascript:alert(1)"}}`, ""},
		{own, `{"annotations":{"run_url":"data:text/html,<script>"}}`, ""},
		{own, `{"annotations":{"run_url":"//evil.example"}}`, ""},
		{own, `{"annotations":{"run_url":"/v1/orgs"}}`, ""},
		{own, `{"annotations":{"run_url":"https://user:pass@evil.example"}}`, ""},
		{own, `{"annotations":{"run_url":"https://evil.example/` + strings.Repeat("a", 5000) + `"}}`, ""},
	} {
		payload := `{"_type":"x","predicateType":"` + test.predicateType + `","predicate":` + test.predicate + `}`
		if got := attestation.RunOf([]byte(payload)); got != test.want {
			t.Errorf("%s: got %q, want %q", payload, got, test.want)
		}
	}
	for _, payload := range []string{"", "null", "[]", "tree 0123"} {
		if got := attestation.RunOf([]byte(payload)); got != "" {
			t.Errorf("%q: got %q", payload, got)
		}
	}
}
