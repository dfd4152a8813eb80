package attestation

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// The outcome of a collection is the worst of its members', even if the command exited with 0.
func TestCollections(t *testing.T) {
	const witness, cilock = "https://witness.dev/attestations/", "https://aflock.ai/attestations/"
	member := func(uri, attestation string) string {
		return `{"type":"` + uri + `","attestation":` + attestation + `}`
	}
	exit0 := member(cilock+"command-run/v0.1", `{"cmd":["go","test"],"exitcode":0}`)
	sarif := func(results string) string {
		return member(witness+"sarif/v0.1", `{"report":{"runs":[{"results":`+results+`}]},"reportFileName":"x.sarif"}`)
	}
	list := func(members ...string) string { return strings.Join(members, ",") }

	for _, test := range []struct{ name, members, want string }{
		{"no members", ``, "recorded"},
		{"members without an outcome", list(member(witness+"git/v0.1", `{"commithash":"x"}`),
			member(witness+"environment/v0.1", `{}`)), "recorded"},
		{"an unknown member with a failure", member("https://x.example/scan/v1", `{"failed":3}`), "recorded"},
		{"an exit code of 0", exit0, "pass"},
		{"an exit code of 1", member(cilock+"command-run/v0.1", `{"exitcode":1}`), "fail"},
		{"v0.2 omits an exit code of 0",
			member(cilock+"command-run/v0.2", `{}`), "pass"},
		{"v0.2 with an exit code", member(cilock+"command-run/v0.2", `{"exitcode":2}`), "fail"},
		{"an action that failed", member(cilock+"github-action/v0.1", `{"exitcode":1}`), "fail"},

		{"failed tests after an exit code of 0", list(exit0, member(cilock+"test-results/v0.1",
			`{"predicate":{"summary":{"total":5,"passed":2,"failed":3,"skipped":0}}}`)), "fail"},
		{"failed tests without a command", member(cilock+"test-results/v0.1",
			`{"predicate":{"summary":{"failed":3}}}`), "fail"},
		{"failed tests of witness, without the wrapper", list(member(witness+"test-results/v0.1", `{"summary":{"failed":1}}`),
			exit0), "fail"},
		{"failed tests without a summary", list(exit0, member(witness+"test-results/v0.1", `{"failed":3}`)), "fail"},
		{"failed tests in the wrapper, without a summary", list(exit0, member(cilock+"test-results/v0.1",
			`{"predicate":{"failed":3}}`)), "fail"},
		{"tests with errors", member(cilock+"test-results/v0.1",
			`{"predicate":{"summary":{"failed":0,"errors":1}}}`), "fail"},
		{"a list of failed tests", member(cilock+"test-results/v0.1",
			`{"predicate":{"summary":{"failed":0},"failedTests":[{"name":"x"}]}}`), "fail"},
		{"tests that passed", member(cilock+"test-results/v0.1",
			`{"predicate":{"summary":{"passed":5,"failed":0}}}`), "pass"},

		{"SARIF with a finding", list(exit0, sarif(`[{"ruleId":"x"}]`)), "fail"},
		{"SARIF with a note", sarif(`[{"ruleId":"x","level":"note"}]`), "fail"},
		{"SARIF without findings", sarif(`[]`), "pass"},
		{"SARIF that was not computed", sarif(`null`), "recorded"},
		{"SARIF results that are not findings", sarif(`[{"kind":"pass"},{"level":"none"},{"baselineState":"absent"},` +
			`{"suppressions":[{"kind":"inSource"}]},{"suppressions":[{"kind":"external","status":"accepted"}]}]`), "pass"},
		{"SARIF with a suppression that was rejected", sarif(`[{"suppressions":[{"status":"rejected"}]}]`), "fail"},
		{"SARIF of a tool that broke", member(cilock+"sarif/v0.1",
			`{"report":{"runs":[{"results":[],"invocations":[{"executionSuccessful":false}]}]}}`), "fail"},
		{"two runs", member(cilock+"sarif/v0.1", `{"report":{"runs":[{"results":[]},{"results":[{}]}]}}`), "fail"},

		{"a secret", list(exit0, member(witness+"secretscan/v0.1", `{"findings":[{"ruleId":"x"}]}`)), "fail"},
		{"no secret", member(witness+"secretscan/v0.1", `{"findings":[]}`), "pass"},
		{"a vulnerability", member(cilock+"govulncheck/v0.1", `{"summary":{"totalFindings":1,"findings":[{}]}}`), "fail"},
		{"an image with vulnerabilities", member(cilock+"trivy/v0.1", `{"summary":{"vulnCount":2}}`), "fail"},
		{"a failed control", member(cilock+"inspec/v0.1", `{"scanSummary":{"failedControls":1}}`), "fail"},
		{"a failed check", member(cilock+"kube-bench/v0.1", `{"summary":{"total_fail":1}}`), "fail"},
		{"a warning of Docker's benchmark", member(cilock+"docker-bench/v0.1", `{"summary":{"total_warn":1}}`), "fail"},
		{"a failed rule", member(cilock+"oscap/v0.1", `{"scanSummary":{"failCount":1}}`), "fail"},
		{"a check that did not succeed", member(cilock+"linkerd-check/v0.1",
			`{"check_summary":{"error":0,"overall_success":false}}`), "fail"},
		{"a host with a vulnerability", member(cilock+"nessus/v0.1",
			`{"scanSummary":{"vulnerabilities":{"critical":0,"low":1,"info":9}}}`), "fail"},
		{"a summary that failed", list(exit0, member("https://slsa.dev/verification_summary/v1",
			`{"verificationResult":"FAILED"}`)), "fail"},
		{"a link with a return value", list(exit0, member("https://in-toto.io/attestation/link/v0.3",
			`{"name":"x","byproducts":{"return-value":1}}`)), "fail"},
		{"test results of in-toto with a warning", list(exit0, member("https://in-toto.io/attestation/test-result/v0.1",
			`{"result":"WARNED"}`)), "warn"},
		{"provenance, which states no outcome here", member("https://slsa.dev/provenance/v1", `{}`), "recorded"},

		{"a summary of a fork", member("https://slsa.dev/verification_summary/v1", `{"verificationResult":"PASSED",`+
			`"resourceUri":"git+https://github.com/fork/api"}`), "predicate.resourceUri"},
		{"a summary that cannot be read", member("https://slsa.dev/verification_summary/v1", `{}`),
			"predicate.attestations[0].attestation"},
		{"SARIF that was not computed, of a tool that ran", member(cilock+"sarif/v0.1",
			`{"report":{"runs":[{"results":null,"invocations":[{"executionSuccessful":true}]}]}}`), "recorded"},
		{"a count that is a truth value", member(cilock+"test-results/v0.1", `{"summary":{"failed":true}}`),
			"predicate.attestations[0].attestation.summary.failed"},
		{"a count that is not whole", member(cilock+"test-results/v0.1", `{"summary":{"failed":0.5}}`),
			"predicate.attestations[0].attestation.summary.failed"},
		{"an exit code that is a list", member(cilock+"command-run/v0.1", `{"exitcode":[]}`),
			"predicate.attestations[0].attestation.exitcode"},
		{"errors that are a truth value", member(cilock+"linkerd-check/v0.1", `{"check_summary":{"error":true}}`),
			"predicate.attestations[0].attestation.check_summary.error"},
		{"another spelling", member(cilock+"test-results/v0.1", `{"predicate":{"summary":{"failed":0,"Failed":3}}}`),
			"predicate.attestations[0].attestation.predicate.summary.failed"},
		{"a count that is a text", member(cilock+"test-results/v0.1", `{"predicate":{"summary":{"failed":"3"}}}`),
			"predicate.attestations[0].attestation.predicate.summary.failed"},
		{"a run that is a text", member(cilock+"sarif/v0.1", `{"report":{"runs":["x"]}}`),
			"predicate.attestations[0].attestation.report.runs[0]"},
		{"a list that is an object", member(cilock+"secretscan/v0.1", `{"findings":{}}`),
			"predicate.attestations[0].attestation.findings"},
		{"a member that is a text", member(cilock+"trivy/v0.1", `"x"`), "predicate.attestations[0].attestation"},
		{"a command without the exit code", member(cilock+"command-run/v0.1", `{}`),
			"predicate.attestations[0].attestation.exitcode"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, uri := range []string{"https://witness.dev/attestation-collection/v0.1",
				"https://aflock.ai/attestation-collection/v0.1"} {
				got, err := parseStatement([]byte(statementOf(aboutCommit, uri,
					`{"name":"unit","attestations":[`+test.members+`]}`)), Place{WebURL: "https://github.com/acme/api"})
				if strings.HasPrefix(test.want, "predicate.") {
					ledgertest.WantField(t, err, test.want)
				} else if err != nil || got.outcome.Result.Status != ledger.Status(test.want) {
					t.Errorf("got %+v, %v; want %s", got.outcome, err, test.want)
				}
			}
		})
	}
}
