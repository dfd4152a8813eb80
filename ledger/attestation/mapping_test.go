package attestation

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// fixtureCommit is the commit that the statements in testdata/statements are about.
const fixtureCommit = "df043c8a9b1077440b11a9cb418b676e1ac2dd2b"

func statementFile(t *testing.T, name string) []byte {
	t.Helper()
	return must.Read(t, filepath.Join("..", "testdata", "statements", name))
}

// The statements of other tools have these outcomes.
func TestStatementsOfOtherTools(t *testing.T) {
	tests := []struct {
		file, predicate string
		status          ledger.Status
		code            ledger.Code // if it is refused
	}{
		{file: "artifact_sha1_not_commit.json", code: ledger.CodeNoCommitSubject},
		{"code_review.json", "https://example.com/code-review/v0.1", ledger.Recorded, ""},
		{"cyclonedx.json", "sbom:cyclonedx", ledger.Recorded, ""},
		{"gitTree_and_commit.json", "test:default", ledger.Pass, ""},
		{"link03_rc0.json", "run:test", ledger.Pass, ""},
		{"link03_rc1.json", "run:test", ledger.Fail, ""},
		{"no_predicate.json", "sbom:spdx", ledger.Recorded, ""},
		{"openvex_affected.json", "scan:default", ledger.Recorded, ""},
		{file: "prov1_multi.json", code: ledger.CodeSeveralCommits},
		{"sarif_cosign.json", "scan:default", ledger.Recorded, ""},
		{"spdx.json", "sbom:spdx", ledger.Recorded, ""},
		{"subject_sha1_file_and_gitCommit.json", "test:default", ledger.Pass, ""},
		{"svr02.json", "svr:x", ledger.Pass, ""},
		{file: "svr02_empty.json", code: ledger.CodeInvalidStatement},
		{"test-result_FAILED.json", "test:.github/workflows/ci.yml", ledger.Fail, ""},
		{"test-result_PASSED.json", "test:.github/workflows/ci.yml", ledger.Pass, ""},
		{"test-result_noconfig.json", "test:default", ledger.Pass, ""},
		{"vsa_source_L0.json", "vsa:example.com/source_verifier", ledger.Pass, ""},
		{"vulns02_critical.json", "scan:pkg:github/aquasecurity/trivy", ledger.Recorded, ""},
	}

	files, err := filepath.Glob("../testdata/statements/*.json")
	if err != nil || len(files) != len(tests) {
		t.Errorf("%d files and %d tests, %v", len(files), len(tests), err)
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			got, err := parseStatement(statementFile(t, test.file), Place{})
			if test.code != "" {
				ledgertest.WantCode(t, err, test.code)
				return
			}
			must.OK(t, err)
			if got.commit != fixtureCommit || got.outcome.Predicate != test.predicate ||
				got.outcome.Result.Status != test.status || got.outcome.Slot != "" {
				t.Errorf("got %+v, want %s %s", got, test.predicate, test.status)
			}
		})
	}
}

// A type that is nearly one of the table is refused. Others state no outcome.
func TestPredicateTypesThatAreNotInTheTable(t *testing.T) {
	tests := []struct {
		predicateType string
		refused       bool
	}{
		{"https://slsa.dev/provenance/V1", true},
		{"https://SLSA.dev/provenance/v1", true},
		{"https://slsa.dev/provenance/v1/", true},
		{"https://slsa.dev//provenance/v1", true},
		{"https://slsa.dev/provenance", true},
		{"https://in-toto.io/attestation/test-result", true},
		{"https://in-toto.io/attestation/Test-Result/v0.1", true},
		{"https://in-toto.io/link/v0.2", true},
		{"https://github.com/LedgerD/ledgerd/predicate/result/v1", true},
		{"https://SPDX.dev/Document", true},
		{"https://spdx.dev/document/v2.3", true},
		{"https://slsa.dev/provenance/v2", false},
		{"https://slsa.dev/provenance/v0.1", false},
		{"https://in-toto.io/attestation/test-result/v0.2", false},
		{"https://in-toto.io/attestation/release/v0.1", false},
		{"https://in-toto.io/attestation/scai/v0.3", false},
		{"https://cosign.sigstore.dev/attestation/v1", false},
	}
	for _, test := range tests {
		t.Run(test.predicateType, func(t *testing.T) {
			got, err := parseStatement([]byte(statementOf(aboutCommit, test.predicateType, `{"result":"PASSED"}`)), Place{})
			if test.refused {
				ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
				ledgertest.WantField(t, err, "predicateType")
				return
			}
			if err != nil || got.outcome.Predicate != test.predicateType || got.outcome.Result.Status != ledger.Recorded {
				t.Errorf("got %+v, %v; want it recorded", got, err)
			}
		})
	}

	for _, version := range []string{"https://spdx.dev/Document/v2.3", "https://cyclonedx.org/bom/v1.6",
		"https://openvex.dev/ns", "https://in-toto.io/attestation/vulns", "https://cosign.sigstore.dev/attestation/vuln/v1"} {
		got, err := parseStatement([]byte(statementOf(aboutCommit, version, `{}`)), Place{})
		if err != nil || strings.Contains(got.outcome.Predicate, "://") {
			t.Errorf("%s: got %+v, %v; want a name of the table", version, got, err)
		}
	}
}

// Each type names its outcome.
func TestOutcomeNames(t *testing.T) {
	const (
		witness = "https://witness.testifysec.com/attestation-collection/v0.1"
		linkV02 = "https://in-toto.io/Link/v0.2"
		vulns   = "https://in-toto.io/attestation/vulns/v0.1"
		vex     = "https://openvex.dev/ns/v0.2.0"
		sarif   = "https://in-toto.io/attestation/sarif/v0.1"
	)
	run := func(code string) string {
		return `{"type":"https://witness.dev/attestations/command-run/v0.1","starttime":"2026-11-20T09:00:00Z",` +
			`"endtime":"2026-11-20T09:00:02Z","attestation":{"exitcode":` + code + `}}`
	}
	collection := func(attestations ...string) string {
		return `{"name":"unit","attestations":[` + strings.Join(attestations, ",") + `]}`
	}
	configured := func(list string) string { return `{"result":"PASSED","configuration":` + list + `}` }
	builder := func(id string) string { return `{"runDetails":{"builder":{"id":"` + id + `"}}}` }

	tests := []struct {
		predicateType, predicate string
		want                     string // predicate, status and duration
	}{
		{testResultV01, configured(`[{"name":"unit"},{"name":"e2e"}]`), "test:e2e+unit pass 0"},
		{testResultV01, configured(`[{"name":"a+b"}]`), "test:a%2Bb pass 0"},
		{testResultV01, configured(`[{"name":"default"}]`), "test:%64efault pass 0"},
		{testResultV01, configured(`[{"name":"é t*"}]`), "test:%C3%A9%20t%2A pass 0"},
		{testResultV01, configured(`[{"uri":"https://x"}]`), "test:uri=https%3A//x pass 0"},
		{testResultV01, configured(`[{"digest":{"gitBlob":"ab"}}]`), "test:digest=gitBlob%3Aab pass 0"},
		{testResultV01, `{"result":"FAILED","failedTests":["a"],"warnedTests":["b"]}`, "test:default fail 0"},
		{testResultV01, `{"result":"WARNED","warnedTests":["b"]}`, "test:default warn 0"},
		{witness, collection(run("0"), run("0")), "witness:unit pass 4000"},
		{witness, collection(run("0"), run("2")), "witness:unit fail 4000"},
		{witness, collection(run("-1")), "witness:unit fail 2000"},
		{witness, collection(`{"type":"https://witness.dev/attestations/Command-Run","attestation":{"exitcode":1}}`),
			"witness:unit fail 0"},
		{witness, collection(`{"type":"https://witness.dev/attestations/git/v0.1","attestation":{"exitcode":1}}`),
			"witness:unit recorded 0"},
		{linkV02, `{"name":"build","byproducts":{"return-value":0}}`, "run:build pass 0"},
		{linkV02, `{"name":"build","byproducts":{"return-value":127}}`, "run:build fail 0"},
		{linkV02, `{"name":"build","byproducts":{}}`, "run:build recorded 0"},
		{linkV02, `{"name":"build"}`, "run:build recorded 0"},
		{slsaV1, builder("https://github.com/a/b/.github/workflows/c.yml@refs/heads/main"),
			"build:github.com/a/b/.github/workflows/c.yml%40refs/heads/main pass 0"},
		{slsaV1, builder("http://ci"), "build:http:%2F/ci pass 0"},
		{slsaV1, builder("ci"), "build::ci pass 0"},
		{slsaV1, builder("//ci"), "build::%2F/ci pass 0"},
		{slsaV1, builder("https:////ci"), "build:%2F/ci pass 0"},
		{slsaV1, builder("a:/b"), "build:a:%2Fb pass 0"},
		{testResultV01, configured(`[{"name":"//x"}]`), "test:%2F/x pass 0"},
		{slsaV02, `{"builder":{"id":"https://ci"}}`, "build:ci pass 0"},
		{vsaV1, `{"verifier":{"id":"https://v.example"},"verificationResult":"FAILED"}`, "vsa:v.example fail 0"},
		{vulns, `{"scanner":{"uri":"https://scan.example"}}`, "scan:scan.example recorded 0"},
		{vex, `{"author":"acme <sec@acme.example>"}`, "scan:acme%20%3Csec%40acme.example%3E recorded 0"},
		{sarif, `{"runs":[{"tool":{"driver":{"name":"gosec"}}},{"tool":{"driver":{"name":"CodeQL"}}}]}`,
			"scan:CodeQL+gosec recorded 0"},
	}
	for _, test := range tests {
		got, err := parseStatement([]byte(statementOf(aboutCommit, test.predicateType, test.predicate)), Place{})
		if err != nil {
			t.Errorf("%s %s: %v", test.predicateType, test.predicate, err)
			continue
		}
		o := got.outcome
		text := o.Predicate + " " + string(o.Result.Status) + " " + string(ledgertest.Must(json.Marshal(o.Result.DurationMS)))
		if text != test.want {
			t.Errorf("%s %s: got %s, want %s", test.predicateType, test.predicate, text, test.want)
		}
	}
}

// A result that is missing, unknown or contradictory is refused, as are names and
// members that could be taken for others.
func TestStatementsWithoutOneMeaning(t *testing.T) {
	ours := func(members string) string {
		return `{"predicate":"test:go","result":{"status":"pass"}` + members + `}`
	}
	const command = `{"type":"https://witness.dev/attestations/command-run/v0.1","attestation":`
	witness := "https://witness.dev/attestation-collection/v0.1"
	link := "https://in-toto.io/attestation/link/v0.3"
	subject := func(s string) string { return `[` + s + `]` }
	const gitCommitOf = `"gitCommit":"` + ledgertest.Commit + `"`

	tests := []struct{ name, text, field string }{
		{"passed with failed tests", statementOf(aboutCommit, testResultV01, `{"result":"PASSED","failedTests":["a"]}`),
			"predicate.result"},
		{"warned with failed tests", statementOf(aboutCommit, testResultV01, `{"result":"WARNED","failedTests":[{}]}`),
			"predicate.result"},
		{"passed with warned tests", statementOf(aboutCommit, testResultV01, `{"result":"PASSED","warnedTests":["a"]}`),
			"predicate.result"},
		{"a configuration without a name", statementOf(aboutCommit, testResultV01,
			`{"result":"PASSED","configuration":[{"name":"a"},{}]}`), "predicate.configuration[1].name"},
		{"two results", statementOf(aboutCommit, vsaV1, `{"verificationResult":"PASSED","verification_result":"FAILED"}`),
			"predicate.verificationResult"},
		{"passed at the level FAILED", statementOf(aboutCommit, vsaV1,
			`{"verificationResult":"PASSED","verifiedLevels":["FAILED"]}`), "predicate.verificationResult"},
		{"no verified properties", statementOf(aboutCommit, "https://in-toto.io/attestation/svr/v0.1", `{}`),
			"predicate.properties"},
		{"no exit code", statementOf(aboutCommit, witness, `{"attestations":[`+command+`{}}]}`),
			"predicate.attestations[0].attestation.exitcode"},
		{"an exit code in a text", statementOf(aboutCommit, witness, `{"attestations":[`+command+`{"exitcode":"0"}}]}`),
			"predicate.attestations[0].attestation.exitcode"},
		{"a command-run that is null", statementOf(aboutCommit, witness, `{"attestations":[`+command+`null}]}`),
			"predicate.attestations[0].attestation"},
		{"a return value in a text", statementOf(aboutCommit, link, `{"byproducts":{"return-value":"0"}}`),
			"predicate.byproducts.return-value"},
		{"a return value that is no integer", statementOf(aboutCommit, link, `{"byproducts":{"return-value":0.5}}`),
			"predicate.byproducts.return-value"},

		{"a reserved name", statementOf(aboutCommit, ResultPredicateType,
			`{"predicate":"merge:x","result":{"status":"pass"}}`),
			"predicate.predicate"},
		{"a reserved name in upper case", statementOf(aboutCommit, ResultPredicateType,
			`{"predicate":"Exception:x","result":{"status":"pass"}}`), "predicate.predicate"},
		{"recorded, which our type cannot claim", statementOf(aboutCommit, ResultPredicateType,
			`{"predicate":"test:go","result":{"status":"recorded"}}`), "predicate.result.status"},
		{"a repo without its org", statementOf(aboutCommit, ResultPredicateType, ours(`,"repo":"api"`)), "predicate.repo"},
		{"an invalid time", statementOf(aboutCommit, ResultPredicateType, ours(`,"finishedOn":"today"`)),
			"predicate.finishedOn"},

		{"_Type", strings.Replace(statementOf(aboutCommit, anyType, `{}`), `"_type"`, `"_Type":"x","_type"`, 1), "_type"},
		{"ſubject", strings.Replace(statementOf(aboutCommit, anyType, `{}`), `"subject"`, `"ſubject":[],"subject"`, 1),
			"subject"},
		{"Predicate", strings.Replace(statementOf(aboutCommit, anyType, `{}`), `"predicate"`, `"Predicate":1,"predicate"`, 1),
			"predicate"},
		{"Digest", statementOf(subject(`{"Digest":{},"digest":{`+gitCommitOf+`}}`), anyType, `{}`), "subject[0].digest"},
		{"gitcommit", statementOf(subject(`{"digest":{`+gitCommitOf+`,"gitcommit":"x"}}`), anyType, `{}`),
			"subject[0].digest.gitCommit"},
		{"SHA256", statementOf(subject(`{"digest":{`+gitCommitOf+`}},{"digest":{"SHA256":"x"}}`), anyType, `{}`),
			"subject[1].digest.sha256"},
		{"Result in our type", statementOf(aboutCommit, ResultPredicateType, ours(`,"Result":{"status":"fail"}`)),
			"predicate.result"},
		{"Status in our type", statementOf(aboutCommit, ResultPredicateType,
			`{"predicate":"test:go","result":{"status":"pass","Status":"fail"}}`), "predicate.result.status"},
		{"RESULT in a test result", statementOf(aboutCommit, testResultV01, `{"result":"PASSED","RESULT":"FAILED"}`),
			"predicate.result"},
		{"ExitCode in witness", statementOf(aboutCommit, witness,
			`{"attestations":[`+command+`{"exitcode":0,"ExitCode":1}}]}`), "predicate.attestations[0].attestation.exitcode"},
		{"Return-Value in a link", statementOf(aboutCommit, link, `{"byproducts":{"return-value":0,"Return-Value":1}}`),
			"predicate.byproducts.return-value"},
		{"Materials", statementOf(aboutCommit, slsaV02, `{"Materials":[]}`), "predicate.materials"},
		{"GitCommit of a dependency", statementOf(`[]`, slsaV1,
			`{"buildDefinition":{"resolvedDependencies":[{"digest":{"GitCommit":"x"}}]}}`),
			"predicate.buildDefinition.resolvedDependencies[0].digest.gitCommit"},
		{"Scanner", statementOf(aboutCommit, "https://in-toto.io/attestation/vulns", `{"Scanner":{}}`), "predicate.scanner"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := parseStatement([]byte(test.text), Place{})
			ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
			ledgertest.WantField(t, err, test.field)
		})
	}
}

// Types about artifacts have a slot: what the statement is about in addition to the
// commit. It distinguishes images.
func TestSlots(t *testing.T) {
	const a, b = `"sha256":"aa"`, `"sha256":"bb"`
	subjects := func(list ...string) string { return `[` + strings.Join(list, ",") + `]` }
	commit := `{"digest":{"gitCommit":"` + ledgertest.Commit + `"}}`
	digest := func(digests string) string { return `{"digest":{` + digests + `}}` }
	const passed = `{"verificationResult":"PASSED"}`

	tests := []struct {
		name, subject string
		want          string // "*" is a hash
	}{
		{"only the commit", subjects(commit), ""},
		{"an image", subjects(commit, digest(a)), "sha256:aa"},
		{"an image twice", subjects(commit, digest(a), digest(a)), "sha256:aa"},
		{"the commit and an image in one subject",
			subjects(`{"digest":{"gitCommit":"` + strings.ToUpper(ledgertest.Commit) + `","gitTree":"cc",` + a + `}}`),
			"sha256:aa"},
		{"two images", subjects(commit, digest(a), digest(b)), "*"},
		{"two digests", subjects(commit, digest(a+`,"sha512":"cc"`)), "*"},
		{"a tree in a subject of its own", subjects(commit, digest(`"gitTree":"dd"`)), "gitTree:dd"},
		{"a file of the commit", subjects(commit, digest(`"gitBlob":"cc"`)), "gitBlob:cc"},
		{"a name alone", subjects(commit, `{"name":"a b"}`), "name=a%20b="},
		{"a long digest", subjects(commit, digest(`"x":"`+strings.Repeat("0", maxName)+`"`)), "*"},
	}
	seen := make(map[string]string)
	for _, test := range tests {
		got := ledgertest.Must(parseStatement([]byte(statementOf(test.subject, vsaV1, passed)), Place{})).outcome.Slot
		if got != test.want && (test.want != "*" || !strings.HasPrefix(got, "subjects:") || len(got) > maxName) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if other, ok := seen[got]; ok && test.want == "*" {
			t.Errorf("%s and %s have the same slot %s", test.name, other, got)
		}
		seen[got] = test.name
	}

	reordered := statementOf(subjects(digest(b), commit, digest(a)), vsaV1, passed)
	if got := ledgertest.Must(parseStatement([]byte(reordered), Place{})).outcome.Slot; seen[got] != "two images" {
		t.Errorf("in another order, two images have the slot %s", got)
	}
	test := statementOf(subjects(commit, digest(a)), testResultV01, `{"result":"PASSED"}`)
	if got := ledgertest.Must(parseStatement([]byte(test), Place{})).outcome.Slot; got != "" {
		t.Errorf("a test result has the slot %q, want none", got)
	}
}

// Statements say when they finished. The future is refused, with a tolerance for the
// signer's clock.
func TestFinishedOn(t *testing.T) {
	key := ledgertest.NewP256()
	org := ledgertest.Keyring(ledgertest.KeyIdentity(key.Public()))
	for ahead, ok := range map[ledger.Time]bool{-1: true, 0: true, 5 * 60 * 1000: true, 5*60*1000 + 1: false} {
		at := ledgertest.Now + ahead
		payload := ledgertest.Must(NewStatement("", ledgertest.Commit, ResultPredicate{Predicate: "test:go",
			Result: ledger.Result{Status: ledger.Pass}, FinishedOn: at}))
		got, err := Verify(ledgertest.Must(SignDSSE(key, payload)), org, ledgertest.Now)
		if !ok {
			ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
		} else if err != nil || got.FinishedAt != at {
			t.Errorf("%d ms ahead: got %v, %v", ahead, got, err)
		}
	}
}

// Each type has its own time.
func TestFinishedAt(t *testing.T) {
	const at, old = `"2026-11-20T09:00:00Z"`, `"2025-11-20T09:00:00Z"`
	tests := []struct{ predicateType, predicate string }{
		{vsaV1, `{"verificationResult":"PASSED","timeVerified":` + at + `}`},
		{"https://slsa.dev/verification_summary/v0.2",
			`{"verification_result":"PASSED","time_verified":` + at + `,"timeVerified":` + old + `}`},
		{"https://in-toto.io/attestation/svr/v0.1", `{"properties":["A"],"timeCreated":` + at + `}`},
		{slsaV1, `{"runDetails":{"metadata":{"startedOn":` + old + `,"finishedOn":` + at + `}}}`},
		{slsaV02, `{"metadata":{"buildStartedOn":` + old + `,"buildFinishedOn":` + at + `}}`},
		{ResultPredicateType, `{"predicate":"test:go","result":{"status":"pass"},"startedOn":` + old +
			`,"finishedOn":` + at + `}`},
	}
	for _, test := range tests {
		predicateType, predicate := test.predicateType, test.predicate
		got, err := parseStatement([]byte(statementOf(aboutCommit, predicateType, predicate)), Place{})
		if want := "2026-11-20T09:00:00.000Z"; err != nil || got.outcome.FinishedAt.String() != want {
			t.Errorf("%s: finished at %s, %v; want %s", predicateType, got.outcome.FinishedAt, err, want)
		}
	}
}

// A name of the maximum length stays as it is.
func TestOutcomeNameLength(t *testing.T) {
	fits := strings.Repeat("a", maxName-len("test:"))
	if got := outcomeName("test", fits); got != "test:"+fits {
		t.Errorf("a name of %d bytes became %s", maxName, got)
	}
	for _, more := range []string{"a", "b"} {
		got := outcomeName("test", fits+more)
		if len(got) != maxName || !strings.HasPrefix(got, "test:aaa") || got == outcomeName("test", fits+"c") {
			t.Errorf("a longer name became %s", got)
		}
	}
}

// A statement for another repo is refused.
func TestCheckRepo(t *testing.T) {
	for repo, code := range map[string]ledger.Code{"": "", "acme/api": "", "acme/API": "",
		"acme/web": ledger.CodeWrongRepo, "other/api": ledger.CodeWrongRepo} {
		a := Attestation{Repo: repo}
		ledgertest.WantCode(t, a.CheckRepo("acme", "api"), code)
	}
}

// FuzzOutcomes looks for two statements whose results are independent, but that have the
// same predicate and slot.
func FuzzOutcomes(f *testing.F) {
	f.Add("unit", "e2e", "", "unit+e2e", "", "")
	f.Add("default", "", "", "", "", "")
	f.Add("https://x", "", "aa", "x", "", "aa")
	f.Add("http://x", "", "aa", "https://http://x", "", "bb")
	f.Add(strings.Repeat("a", 130), "", "", strings.Repeat("a", 131), "", "")
	f.Add(strings.Repeat("a", 200), "a", "sha256:aa\nsha256", strings.Repeat("a", 200), "b", "aa")

	f.Fuzz(func(t *testing.T, name1, config1, digest1, name2, config2, digest2 string) {
		for _, text := range []string{name1, config1, digest1, name2, config2, digest2} {
			if !utf8.ValidString(text) {
				return
			}
		}
		for _, statements := range []func(name, config, digest string) ([]byte, []string){testOf, summaryOf} {
			first, about1 := statements(name1, config1, digest1)
			second, about2 := statements(name2, config2, digest2)
			if strings.Join(about1, "\x00") == strings.Join(about2, "\x00") {
				continue
			}
			a, err1 := parseStatement(first, Place{})
			b, err2 := parseStatement(second, Place{})
			if err := errors.Join(err1, err2); err != nil {
				continue
			}
			if strings.Contains(a.outcome.Predicate, "://") {
				t.Errorf("%s has the name of a predicate type: %s", first, a.outcome.Predicate)
			}
			if a.outcome.Predicate == b.outcome.Predicate && a.outcome.Slot == b.outcome.Slot {
				t.Errorf("%s and %s share %s %q", first, second, a.outcome.Predicate, a.outcome.Slot)
			}
		}
	})
}

// testOf returns a test result for two configurations, and what it is about.
func testOf(name, config, _ string) ([]byte, []string) {
	type named struct {
		Name string `json:"name"`
	}
	var configs []named
	for _, name := range []string{min(name, config), max(name, config)} {
		if name != "" {
			configs = append(configs, named{name})
		}
	}
	list := ledgertest.Must(json.Marshal(configs))
	return []byte(statementOf(aboutCommit, testResultV01, `{"result":"PASSED","configuration":`+string(list)+`}`)),
		[]string{string(list)}
}

// summaryOf returns a verification summary of an artifact, and what it is about.
func summaryOf(verifier, name, digest string) ([]byte, []string) {
	quote := func(s string) string { return string(ledgertest.Must(json.Marshal(s))) }
	subject := strings.TrimSuffix(aboutCommit, "]") + `,{"digest":{` + quote("x"+name) + `:` + quote(digest) + `}}]`
	return []byte(statementOf(subject, vsaV1,
		`{"verifier":{"id":`+quote(verifier)+`},"verificationResult":"FAILED"}`)), []string{verifier, name, digest}
}
