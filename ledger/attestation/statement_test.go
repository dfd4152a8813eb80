package attestation

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

const otherCommit = "0123456789abcdef0123456789abcdef01234567"

// statementOf returns a statement with the given members, as JSON.
func statementOf(subject, predicateType, predicate string) string {
	return `{"_type":"https://in-toto.io/Statement/v1","subject":` + subject + `,"predicateType":` +
		strconv.Quote(predicateType) + `,"predicate":` + predicate + `}`
}

// aboutCommit is the subject of most statements in these tests.
const aboutCommit = `[{"name":"git+https://git.example/acme/cobra","digest":{"gitCommit":"` + ledgertest.Commit + `"}}]`

const (
	anyType       = "https://example.com/any"
	testResultV01 = "https://in-toto.io/attestation/test-result/v0.1"
	vsaV1         = "https://slsa.dev/verification_summary/v1"
	slsaV1        = "https://slsa.dev/provenance/v1"
	slsaV02       = "https://slsa.dev/provenance/v0.2"
)

// Each predicate type has its own form of result.
func TestStatementResults(t *testing.T) {
	ours := func(result string) string { return `{"predicate":"test:go","result":` + result + `}` }
	v1 := func(metadata string) string { return `{"runDetails":{"metadata":` + metadata + `}}` }
	v02 := func(metadata string) string { return `{"metadata":` + metadata + `}` }

	tests := []struct {
		predicateType, predicate string
		name                     string
		want                     ledger.Result
	}{
		{ResultPredicateType, ours(`{"status":"pass","duration_ms":1234}`), "test:go",
			ledger.Result{Status: ledger.Pass, DurationMS: 1234}},
		{ResultPredicateType, ours(`{"status":"warn"}`), "test:go", ledger.Result{Status: ledger.Warn, DurationMS: 0}},
		{ResultPredicateType, ours(`{"status":"fail","duration_ms":0}`), "test:go",
			ledger.Result{Status: ledger.Fail, DurationMS: 0}},
		{ResultPredicateType, ours(`{"status":"error","duration_ms":31536000000}`), "test:go",
			ledger.Result{Status: ledger.Errored, DurationMS: 31536000000}},
		{ResultPredicateType, ours(`{"status":"skip","why":"no tests"}`), "test:go",
			ledger.Result{Status: ledger.Skip, DurationMS: 0}},
		{ResultPredicateType, `{"predicate":"review:code","result":{"status":"pass"},"annotations":{"n":1},"x":[]}`,
			"review:code", ledger.Result{Status: ledger.Pass, DurationMS: 0}},
		{testResultV01, `{"result":"PASSED","configuration":[]}`, "test:default",
			ledger.Result{Status: ledger.Pass}},
		{testResultV01, `{"result":"WARNED"}`, "test:default", ledger.Result{Status: ledger.Warn, DurationMS: 0}},
		{testResultV01, `{"result":"FAILED"}`, "test:default", ledger.Result{Status: ledger.Fail, DurationMS: 0}},
		{vsaV1, `{"verificationResult":"PASSED"}`, "vsa:default", ledger.Result{Status: ledger.Pass, DurationMS: 0}},
		{vsaV1, `{"verificationResult":"FAILED"}`, "vsa:default", ledger.Result{Status: ledger.Fail, DurationMS: 0}},
		{"https://slsa.dev/verification_summary/v0.2", `{"verification_result":"FAILED"}`, "vsa:default",
			ledger.Result{Status: ledger.Fail, DurationMS: 0}},
		{slsaV1, v1(`{"startedOn":"2026-11-20T09:00:00Z","finishedOn":"2026-11-20T09:02:30.25Z"}`), "build:default",
			ledger.Result{Status: ledger.Pass, DurationMS: 150_250}},
		{slsaV1, v1(`{"startedOn":"2026-11-20T09:00:00+01:00","finishedOn":"2026-11-20T08:00:01Z"}`), "build:default",
			ledger.Result{Status: ledger.Pass, DurationMS: 1000}},
		{slsaV1, v1(`{"startedOn":"2026-11-20T09:00:00Z"}`), "build:default", ledger.Result{Status: ledger.Pass}},
		{slsaV1, v1(`{"startedOn":"","finishedOn":null}`), "build:default", ledger.Result{Status: ledger.Pass}},
		{slsaV1, v1(`{"startedOn":"2026-11-20T09:00:01Z","finishedOn":"2026-11-20T09:00:00Z"}`), "build:default",
			ledger.Result{Status: ledger.Pass, DurationMS: 0}},
		{slsaV1, v1(`{"startedOn":"0001-01-01T00:00:01Z","finishedOn":"9999-01-01T00:00:00Z"}`), "build:default",
			ledger.Result{Status: ledger.Pass, DurationMS: maxDurationMS}},
		{slsaV1, `{}`, "build:default", ledger.Result{Status: ledger.Pass, DurationMS: 0}},
		{slsaV02, v02(`{"buildStartedOn":"2026-11-20T09:00:00Z","buildFinishedOn":"2026-11-20T09:00:02Z"}`), "build:default",
			ledger.Result{Status: ledger.Pass, DurationMS: 2000}},
		{"https://spdx.dev/Document", `{"result":"FAILED"}`, "sbom:spdx", ledger.Result{Status: ledger.Recorded}},
		{anyType, `null`, anyType, ledger.Result{Status: ledger.Recorded}},
		{anyType, `[1,"two"]`, anyType, ledger.Result{Status: ledger.Recorded}},
	}

	for _, test := range tests {
		got, err := parseStatement([]byte(statementOf(aboutCommit, test.predicateType, test.predicate)), Place{})
		if err != nil {
			t.Errorf("%s %s: %v", test.predicateType, test.predicate, err)
			continue
		}
		if got.commit != ledgertest.Commit || got.predicateType != test.predicateType ||
			got.outcome.Predicate != test.name || got.outcome.Result != test.want {
			t.Errorf("%s %s: got %+v, want %s, %v", test.predicateType, test.predicate, got, test.name, test.want)
		}
	}
}

// An invalid statement is refused, and the error names the field.
func TestStatementInvalid(t *testing.T) {
	ours := func(predicate string) string { return statementOf(aboutCommit, ResultPredicateType, predicate) }
	good := ours(`{"predicate":"test:go","result":{"status":"pass","duration_ms":1}}`)
	if _, err := parseStatement([]byte(good), Place{}); err != nil {
		t.Fatal(err)
	}

	tests := []struct{ name, text, field string }{
		{"no type", strings.Replace(good, "_type", "type", 1), "_type"},
		{"another type", strings.Replace(good, "Statement/v1", "Statement/v2", 1), "_type"},
		{"type is a number", `{"_type":1}`, "_type"},
		{"no subject", strings.Replace(good, `"subject"`, `"subjects"`, 1), "subject"},
		{"subject is an object", statementOf(`{}`, anyType, `{}`), "subject"},
		{"a subject is a string", statementOf(`["x"]`, anyType, `{}`), "subject[0]"},
		{"digest is a string", statementOf(`[{"digest":"x"}]`, anyType, `{}`), "subject[0].digest"},
		{"gitCommit is a number", statementOf(`[{"digest":{"gitCommit":7}}]`, anyType, `{}`), "subject[0].digest.gitCommit"},
		{"gitCommit is short", statementOf(`[{"digest":{}},{"digest":{"gitCommit":"adbc881"}}]`, anyType, `{}`),
			"subject[1].digest.gitCommit"},
		{"gitCommit is not hex", statementOf(`[{"digest":{"gitCommit":"`+strings.Repeat("g", 40)+`"}}]`, anyType, `{}`),
			"subject[0].digest.gitCommit"},
		{"sha1 of 64 digits", statementOf(
			`[{"name":"git+https://git.example/a","digest":{"sha1":"`+strings.Repeat("0", 64)+`"}}]`, anyType, `{}`),
			"subject[0].digest.sha1"},
		{"no predicate type", statementOf(aboutCommit, "", `{}`), "predicateType"},
		{"a predicate type of 513 bytes", statementOf(aboutCommit, "https://x/"+strings.Repeat("y", 503), `{}`),
			"predicateType"},
		{"a predicate type with a space", statementOf(aboutCommit, "my type", `{}`), "predicateType"},
		{"a predicate name as type", statementOf(aboutCommit, "test:go", `{"result":{"status":"fail"}}`), "predicateType"},
		{"a URN", statementOf(aboutCommit, "urn:example:any", `{}`), "predicateType"},
		{"a future version of our type", statementOf(aboutCommit, "https://github.com/ledgerd/ledgerd/predicate/result/v2",
			`{"predicate":"test:go","result":{"status":"fail"}}`), "predicateType"},
		{"an unknown type of ours", statementOf(aboutCommit, "https://github.com/ledgerd/ledgerd/predicate/review/v1", `{}`),
			"predicateType"},
		{"our type with a trailing slash", statementOf(aboutCommit, ResultPredicateType+"/", `{}`), "predicateType"},
		{"a predicate type with a control character", statementOf(aboutCommit, "type\n", `{}`), "predicateType"},
		{"a long predicate type", statementOf(aboutCommit, "https://"+strings.Repeat("x", 505), `{}`), "predicateType"},
		{"no predicate", strings.Replace(good, `"predicate":{"p`, `"content":{"p`, 1), "predicate"},
		{"predicate is null", ours(`null`), "predicate"},
		{"predicate is a list", ours(`[]`), "predicate"},
		{"no name", ours(`{"result":{"status":"pass"}}`), "predicate.predicate"},
		{"an invalid name", ours(`{"predicate":"test go","result":{"status":"pass"}}`), "predicate.predicate"},
		{"a foreign type as name", ours(`{"predicate":"https://slsa.dev/provenance/v1","result":{"status":"pass"}}`),
			"predicate.predicate"},
		{"no result", ours(`{"predicate":"test:go"}`), "predicate.result.status"},
		{"result is a string", ours(`{"predicate":"test:go","result":"pass"}`), "predicate.result"},
		{"an unknown status", ours(`{"predicate":"test:go","result":{"status":"PASS"}}`), "predicate.result.status"},
		{"a negative duration", ours(`{"predicate":"test:go","result":{"status":"pass","duration_ms":-1}}`),
			"predicate.result.duration_ms"},
		{"a duration over a year", ours(`{"predicate":"test:go","result":{"status":"pass","duration_ms":31536000001}}`),
			"predicate.result.duration_ms"},
		{"a fractional duration", ours(`{"predicate":"test:go","result":{"status":"pass","duration_ms":1.5}}`),
			"predicate.result.duration_ms"},
		{"a duration as a string", ours(`{"predicate":"test:go","result":{"status":"pass","duration_ms":"1"}}`),
			"predicate.result.duration_ms"},
		{"an unknown test result", statementOf(aboutCommit, testResultV01, `{"result":"passed"}`), "predicate.result"},
		{"no test result", statementOf(aboutCommit, testResultV01, `{}`), "predicate.result"},
		{"a VSA that warns", statementOf(aboutCommit, vsaV1, `{"verificationResult":"WARNED"}`),
			"predicate.verificationResult"},
		{"no VSA result", statementOf(aboutCommit, vsaV1, `{}`), "predicate.verificationResult"},
		{"an invalid time", statementOf(aboutCommit, slsaV1, `{"runDetails":{"metadata":{"startedOn":"today"}}}`),
			"predicate.runDetails.metadata.startedOn"},
		{"a bad dependency",
			statementOf(`[]`, slsaV1, `{"buildDefinition":{"resolvedDependencies":[{"digest":{"gitCommit":"x"}}]}}`),
			"predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit"},
		{"a bad material", statementOf(`[]`, slsaV02, `{"materials":[{"uri":"git+https://x","digest":{"sha1":"x"}}]}`),
			"predicate.materials[0].digest.sha1"},
	}

	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseStatement([]byte(test.text), Place{})
			ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
			ledgertest.WantField(t, err, test.field)
		})
	}

	for _, text := range []string{``, `null`, `[]`, `"x"`, `{`, good + good, good[:len(good)-1],
		`{"_type":"","_type":""}`} {
		_, err := parseStatement([]byte(text), Place{})
		ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
	}
}

// The commit is in the subjects or in the sources of provenance.
func TestStatementCommit(t *testing.T) {
	sha256Commit := strings.Repeat("0a", 32)
	deps := func(list string) string {
		return `{"buildDefinition":{"resolvedDependencies":` + list + `}}`
	}
	git := func(commit string) string { return `{"digest":{"gitCommit":"` + commit + `"}}` }
	sha1 := func(commit string) string { return `{"digest":{"sha1":"` + commit + `"}}` }
	named := func(commit string) string {
		return `{"name":"https://witness.dev/attestations/git/v0.1/commithash:` + commit + `",` +
			`"digest":{"sha1":"` + commit + `"}}`
	}
	repo := func(uri, digest, commit string) string {
		return `{"uri":"` + uri + `","digest":{"` + digest + `":"` + commit + `"}}`
	}
	const git1, git2 = "git+https://git.example/acme/cobra@refs/heads/main", "git+https://git.example/acme/tools@v1"
	from := func(parameters, list string) string {
		return `{"buildDefinition":{"externalParameters":` + parameters + `,"resolvedDependencies":` + list + `}}`
	}
	two := `[` + repo(git2, "gitCommit", otherCommit) + `,` + repo(git1, "gitCommit", ledgertest.Commit) + `]`
	twoSHA1 := `[` + repo(git2, "sha1", otherCommit) + `,` + repo(git1, "sha1", ledgertest.Commit) + `]`
	const artifact = `{"name":"cobra.tar.gz",` +
		`"digest":{"sha256":"0000000000000000000000000000000000000000000000000000000000000007"}}`
	tests := []struct {
		name, subject, predicateType, predicate string
		want                                    string // the commit, or the error code
	}{
		{"gitCommit", `[` + git(ledgertest.Commit) + `]`, anyType, `{}`, ledgertest.Commit},
		{"a sha1 that is named as a commit", `[` + named(ledgertest.Commit) + `]`, anyType, `{}`, ledgertest.Commit},
		{"the sha1 of a git URI", `[` + repo("git+https://x/y", "sha1", ledgertest.Commit) + `]`, anyType, `{}`,
			ledgertest.Commit},
		{"the sha1 of a file", `[` + sha1(ledgertest.Commit) + `]`, anyType, `{}`, string(ledger.CodeNoCommitSubject)},
		{"a tree alone", `[{"digest":{"gitTree":"` + ledgertest.Commit + `"}}]`, anyType, `{}`,
			string(ledger.CodeNoCommitSubject)},
		{"two commits by sha1", `[` + named(ledgertest.Commit) + `,` + named(otherCommit) + `]`, anyType, `{}`,
			string(ledger.CodeSeveralCommits)},
		{"a SHA-256 commit", `[` + git(sha256Commit) + `]`, anyType, `{}`, sha256Commit},
		{"upper case", `[` + git(strings.ToUpper(ledgertest.Commit)) + `,` + git(ledgertest.Commit) + `]`, anyType, `{}`,
			ledgertest.Commit},
		{"both, the same commit", `[{"digest":{"gitCommit":"` + ledgertest.Commit + `","sha1":"` + ledgertest.Commit + `"}}]`,
			anyType, `{}`, ledgertest.Commit},
		{"with an artifact", `[` + artifact + `,` + git(ledgertest.Commit) + `]`, anyType, `{}`, ledgertest.Commit},
		{"two commits", `[` + git(ledgertest.Commit) + `,` + git(otherCommit) + `]`, anyType, `{}`,
			string(ledger.CodeSeveralCommits)},
		{"gitCommit before sha1", `[` + named(otherCommit) + `,` + git(ledgertest.Commit) + `]`, anyType, `{}`,
			ledgertest.Commit},
		{"only an artifact", `[` + artifact + `]`, anyType, `{}`, string(ledger.CodeNoCommitSubject)},
		{"no subject", `[]`, anyType, `{}`, string(ledger.CodeNoCommitSubject)},
		{"an empty digest", `[` + git("") + `]`, anyType, `{}`, string(ledger.CodeNoCommitSubject)},

		{"provenance", `[` + artifact + `]`, slsaV1, deps(`[` + git(ledgertest.Commit) + `]`), ledgertest.Commit},
		{"provenance by sha1", `[` + artifact + `]`, slsaV1, deps(`[` + repo(git1, "sha1", ledgertest.Commit) + `]`),
			ledgertest.Commit},
		{"provenance with the sha1 of a file", `[` + artifact + `]`, slsaV1, deps(`[` + sha1(ledgertest.Commit) + `]`),
			string(ledger.CodeNoCommitSubject)},
		{"provenance of a GitHub workflow", `[` + artifact + `]`, slsaV1,
			from(`{"workflow":{"repository":"https://git.example/acme/cobra"}}`, two), ledgertest.Commit},
		{"provenance with a source", `[` + artifact + `]`, slsaV1,
			from(`{"source":"git+https://git.example/acme/cobra.git#main"}`, two), ledgertest.Commit},
		{"provenance with a source object", `[` + artifact + `]`, slsaV1,
			from(`{"source":{"uri":"git+ssh://git@GIT.example/acme/cobra"}}`, two), ledgertest.Commit},
		{"provenance of another source", `[` + artifact + `]`, slsaV1,
			from(`{"source":"git+https://git.example/acme/other"}`, two), string(ledger.CodeSeveralCommits)},
		{"provenance of one repo at two commits", `[` + artifact + `]`, slsaV1, from(
			`{"source":"`+git1+`"}`,
			`[`+repo(git1, "gitCommit", otherCommit)+`,`+repo(git1, "gitCommit", ledgertest.Commit)+`]`),
			string(ledger.CodeSeveralCommits)},
		{"provenance v0.2 with a source", `[` + artifact + `]`, slsaV02, `{"invocation":{"configSource":{"uri":"` + git1 +
			`"}},"materials":` + twoSHA1 + `}`, ledgertest.Commit},
		{"provenance with packages", `[` + artifact + `]`, slsaV1,
			deps(`[` + sha1(otherCommit) + `,` + git(ledgertest.Commit) + `]`), ledgertest.Commit},
		{"provenance of two repos", `[` + artifact + `]`, slsaV1,
			deps(`[` + git(otherCommit) + `,` + git(ledgertest.Commit) + `]`), string(ledger.CodeSeveralCommits)},
		{"provenance of no repo", `[` + artifact + `]`, slsaV1, deps(`[]`), string(ledger.CodeNoCommitSubject)},
		{"subject before dependencies", `[` + git(ledgertest.Commit) + `]`, slsaV1, deps(`[` + git(otherCommit) + `]`),
			ledgertest.Commit},
		{"provenance v0.2", `[` + artifact + `]`, slsaV02, `{"materials":[` + artifact + `,` +
			repo(git1, "sha1", ledgertest.Commit) + `]}`, ledgertest.Commit},
		{"provenance v0.2, gitCommit", `[` + artifact + `]`, slsaV02, `{"materials":[` + git(ledgertest.Commit) + `]}`,
			ledgertest.Commit},
		{"another type's dependencies", `[` + artifact + `]`, anyType, deps(`[` + git(ledgertest.Commit) + `]`),
			string(ledger.CodeNoCommitSubject)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseStatement([]byte(statementOf(test.subject, test.predicateType, test.predicate)), Place{})
			if !ledger.IsCommit(test.want) {
				ledgertest.WantCode(t, err, ledger.Code(test.want))
				if ledger.Code(test.want) == ledger.CodeSeveralCommits &&
					(!strings.Contains(err.Error(), ledgertest.Commit) || !strings.Contains(err.Error(), otherCommit)) {
					t.Errorf("the error %q does not name both commits", err)
				}
				return
			}
			if err != nil || got.commit != test.want {
				t.Errorf("got %s, %v; want %s", got.commit, err, test.want)
			}
		})
	}
}

// Members may be in any order, and the older statement type is accepted.
func TestStatementOrder(t *testing.T) {
	text := `{"predicate":{"result":{"duration_ms":5,"status":"fail"},"predicate":"lint:golangci"},` +
		`"predicateType":"` + ResultPredicateType + `","subject":` + aboutCommit +
		`,"_type":"https://in-toto.io/Statement/v0.1","more":{}}`
	got, err := parseStatement([]byte(text), Place{})
	want := statement{commit: ledgertest.Commit, predicateType: ResultPredicateType,
		outcome: Outcome{Predicate: "lint:golangci", Result: ledger.Result{Status: ledger.Fail, DurationMS: 5}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// FuzzStatement looks for statements that cause a panic, an error other than a
// *ledger.Error, or an invalid result.
func FuzzStatement(f *testing.F) {
	for _, file := range []string{"provenance.statement.json", "test-failed.statement.json",
		"test-passed.statement.json"} {
		f.Add(ledgertest.CosignFile(file))
	}
	f.Add(ledgertest.Passed())
	f.Add([]byte(statementOf(aboutCommit, vsaV1, `{"verificationResult":"PASSED"}`)))
	f.Add([]byte(statementOf(aboutCommit, ExceptionPredicateType,
		`{"repo":"acme/api","requirement":"review","reason":"x","until":"2026-11-21T09:00:00Z"}`)))
	f.Add([]byte(statementOf(aboutCommit, MergePredicateType, mergeBody)))
	f.Add([]byte(statementOf(`[]`, slsaV02, `{"materials":[{"digest":{"sha1":"`+ledgertest.Commit+
		`"}}],"metadata":{"buildStartedOn":"2026-11-20T09:00:00Z"}}`)))

	f.Fuzz(func(t *testing.T, payload []byte) {
		got, err := parseStatement(payload, Place{})
		if err != nil {
			if _, ok := errors.AsType[*ledger.Error](err); !ok || err.Error() == "" {
				t.Fatalf("%T is not a *ledger.Error: %v", err, err)
			}
			return
		}
		o := got.outcome
		if !ledger.IsCommit(got.commit) || o.Predicate == "" || got.predicateType == "" ||
			len(o.Predicate) > maxPredicateType || len(o.Slot) > maxName {
			t.Fatalf("accepted as %+v", got)
		}
		if !slices.Contains(ledger.Statuses(), o.Result.Status) || o.Result.DurationMS < 0 ||
			o.Result.DurationMS > maxDurationMS {
			t.Fatalf("accepted with result %+v", o.Result)
		}
		if x := got.exception; (got.predicateType == ExceptionPredicateType) != (x != Exception{}) ||
			x != (Exception{}) && (x.check() != nil || got.repo != x.Repo || o.Predicate != "exception:"+x.Requirement) {
			t.Fatalf("accepted with exception %+v", x)
		}
		if m := got.merge; (got.predicateType == MergePredicateType) != (m != nil) || m != nil && (m.check() != nil ||
			got.repo != m.Repo || o.Predicate != "merge:"+string(m.Kind) || o.Slot != m.Source.SHA) {
			t.Fatalf("accepted with merge %+v", m)
		}
		envelope := ledgertest.DSSE(payload, []byte("x"))
		again := Remap(Recorded{Envelope: envelope, PredicateType: got.predicateType, Commit: got.commit,
			RecordedAt: o.FinishedAt}).Outcome
		if again != o {
			t.Fatalf("mapped again to %+v, want %+v", again, o)
		}
	})
}
