package attestation

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A summary of another git repository is refused. A summary of an artifact is not.
func TestSummariesOfOtherRepositories(t *testing.T) {
	const home = "https://github.com/acme/api"
	for _, test := range []struct {
		webURL, resource string
		isOther          bool
	}{
		{home, "git+https://github.com/acme/api", false},
		{home, "git+https://github.com/acme/api.git@refs/heads/main", false},
		{home, "git+https://github.com/ACME/api/", false},
		{home, "git+ssh://git@github.com/acme/api", false},
		{home, "git@github.com:acme/api.git", false},
		{home, "https://github.com/acme/api/commit/abc", false},
		{home, "https://github.com/acme/api/releases/download/v1/api.tar.gz", false},
		{home, "pkg:github/acme/api@v1?x=y", false},
		{home, "pkg:docker/acme/api@sha256%3Aabc", false},
		{home, "pkg:npm/%40acme/api@1.0.0", false},
		{home, "ghcr.io/acme/api@sha256:abc", false},
		{home, "https://ghcr.io/acme/api:latest", false},
		{home, "https://github.com/fork/api/releases/download/v1/api.tar.gz", false},
		{home, "", false},
		{"", "git+https://github.com/fork/api", false},
		{"https://git.example.com/acme/api", "ssh://git@git.example.com:2222/acme/api", false},
		{home, "https://ci:tok@github.com/acme/api?x=y", false},
		{home, "git+https://github.com/fork/../acme/api", false},
		{"https://git.example.com/acme/api", "https://ci:tok@git.example.com/acme/api.git#refs/heads/main", false},
		{"https://git.acme.example/projects/ACME/repos/api", "git+https://git.acme.example/scm/acme/api.git", false},
		{"https://git.acme.example/projects/ACME/repos/api", "ssh://git@git.acme.example:7999/acme/api.git", false},
		{"https://git.example.com/acme/api", "https://git.example.com:5000/acme/web@sha256:abc", false},
		{"https://git.example.com/acme/api", "https://git.example.com/acme/web:latest", false},
		{"https://dev.azure.com/acme/shop/_git/api", "git@ssh.dev.azure.com:v3/acme/shop/api", false},
		{"https://dev.azure.com/acme/shop/_git/api", "https://acme@dev.azure.com/acme/shop/_git/api", false},
		{"https://gitlab.acme.example/acme/api", "https://gitlab.acme.example:5050/acme/web@sha256:abc", false},

		{home, "git+https://github.com/fork/api", true},
		{home, "git+https://github.com/acme/api-fork", true},
		{home, "git+https://gitlab.com/acme/api", true},
		{home, "git+https://git.example.com/acme/api", true},
		{home, "https://github.com/fork/api", true},
		{home, "https://github.com/fork/api.git", true},
		{home, "https://codeberg.org/fork/api", true},
		{home, "ssh://git@git.example.com/api", true},
		{home, "git@github.com:fork/api.git", true},
		{home, "pkg:github/fork/api@v1", true},
		{"https://git.example.com/acme/api", "https://git.example.com/fork/api", true},
		{"https://git.example.com/acme/api", "https://u@git.other.example/fork/api.git", true},
		{"https://git.acme.example/projects/ACME/repos/api", "git+https://git.acme.example/scm/fork/api.git", true},
		{"https://dev.azure.com/acme/shop/_git/api", "git@ssh.dev.azure.com:v3/acme/shop/web", true},
		{"https://gitlab.com/acme/team/api", "https://gitlab.com/acme/other/api", true},
		{"https://gitlab.com/acme/team/api", "git+https://gitlab.com/team/api", true},
		{"https://gitlab.com/acme/team/api", "git@gitlab.com:team/api.git", true},
		{"https://git.example.com/gitea/acme/api", "git@git.example.com:acme/api.git", true},
		{home, "git+https://github.com/api", true},
		{"https://gitlab.com/acme/api", "git+https://gitlab.com/scm/acme/api", true},
		{"https://gitlab.com/projects/acme/repos/api", "git@gitlab.com:acme/api", true},
		{home, "git+https://github.com/acme/api/../../fork/api", true},
		{home, "git+https://github.com/acme/api/%2e%2e/%2e%2e/fork/api", true},
		{home, "git+https://github.com/fork/api?x=@sha256:abc", true},
		{home, "git+https://github.com/fork/api@sha256:abc", true},
		{home, "https://github.com/fork/api@sha256:abc", true},
		{home, "https://github.com:443/fork/api@sha256:abc", true},
		{"https://git.example.com/acme/api", "https://u@git.example.com/fork/api?x=y", true},
		{"https://git.example.com/acme/api", "https://git.example.com/fork/api@sha256:abc", true},
	} {
		_, err := parseStatement([]byte(statementOf(aboutCommit, vsaV1,
			`{"verificationResult":"PASSED","resourceUri":"`+test.resource+`"}`)), Place{WebURL: test.webURL})
		if !test.isOther && err != nil {
			t.Errorf("%s in the repo at %s: %v", test.resource, test.webURL, err)
		}
		if test.isOther {
			ledgertest.WantCode(t, err, ledger.CodeWrongRepo)
			ledgertest.WantField(t, err, "predicate.resourceUri")
		}
	}
}

// Other tools identify the commit by a sha1 digest.
func TestSubjectsOfOtherTools(t *testing.T) {
	place := Place{WebURL: "https://git.example.com/acme/api"}
	for name, isCommit := range map[string]bool{
		"git.head":                                               true, // Chainloop
		"https://github.com/acme/api.git":                        true, // gitsign, by the URL of the remote
		"https://github.com/acme/api":                            true,
		"git@github.com:acme/api.git":                            true,
		"ssh://git@git.example.com:22/x/y":                       true,
		"https://gitlab.com/acme/team/api":                       true,
		"https://git.example.com/acme/api":                       true, // the repo's web URL
		"https://git.example.com/acme/other":                     false,
		"https://github.com/acme":                                false,
		"https://github.com/acme/api/a/b.tar":                    false,
		"https://example.com/api.tar.gz":                         false,
		"api.tar.gz":                                             false,
		"https://ci:tok@git.other.example/acme/api.git":          true,
		"https://git.other.example/acme/api.git#refs/heads/main": true,
		"app@sha256:abc":                                         false,
		"head":                                                   false,
	} {
		payload := statementOf(`[{"name":"`+name+`","digest":{"sha1":"`+ledgertest.Commit+`"}}]`, anyType, `{}`)
		got, err := parseStatement([]byte(payload), place)
		if (err == nil) != isCommit || isCommit && got.commit != ledgertest.Commit {
			t.Errorf("%s: got %s, %v", name, got.commit, err)
		}
	}
}

// Chainloop's predicate type is not a URI, but is accepted. Other types need their scheme.
func TestTypesWithoutAScheme(t *testing.T) {
	head := `[{"name":"git.head","digest":{"sha1":"` + ledgertest.Commit + `"}}]`
	got, err := parseStatement([]byte(statementOf(head, "chainloop.dev/attestation/v0.2", `{"metadata":{}}`)), Place{})
	if err != nil || got.commit != ledgertest.Commit || got.outcome.Predicate != "chainloop:attestation" ||
		got.outcome.Result.Status != ledger.Recorded {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, uri := range []string{"slsa.dev/provenance/v1", "chainloop.dev/other/v1", "x"} {
		_, err := parseStatement([]byte(statementOf(head, uri, `{}`)), Place{})
		ledgertest.WantField(t, err, "predicateType")
	}
}

// The repository of a Tekton pipeline is not the source. If there are several sources, the repo's web URL decides.
func TestSourcesOfProvenance(t *testing.T) {
	const home, pipelines = "git+https://github.com/acme/api.git", "git+https://github.com/acme/pipelines"
	dep := func(name, uri, commit string) string {
		return `{"name":"` + name + `","uri":"` + uri + `","digest":{"sha1":"` + commit + `"}}`
	}
	v1 := func(buildType, parameters, deps string) string {
		return `{"buildDefinition":{"buildType":"` + buildType + `","externalParameters":` + parameters +
			`,"resolvedDependencies":[` + deps + `]}}`
	}
	v02 := func(buildType, uri, commit, materials string) string {
		return `{"buildType":"` + buildType + `","invocation":{"configSource":{"uri":"` + uri + `","digest":{"sha1":"` +
			commit + `"}}},"materials":[` + materials + `]}`
	}
	const tekton = "https://tekton.dev/chains/v2/slsa"
	const config = `{"buildConfigSource":{"repository":"` + pipelines + `"},"runSpec":{}}`
	source, pipeline := dep("inputs/result", home, ledgertest.Commit), dep("pipeline", pipelines, otherCommit)
	const none, several = string(ledger.CodeNoCommitSubject), string(ledger.CodeSeveralCommits)

	for _, test := range []struct{ name, uri, predicate, webURL, want string }{
		{"a pipeline and its input", slsaV1, v1(tekton, config, pipeline+","+source), "", ledgertest.Commit},
		{"of another version of the type", slsaV1, v1(tekton+"-tekton", config, pipeline+","+source), "", ledgertest.Commit},
		{"a run without a definition elsewhere", slsaV1, v1("https://tekton.dev/chains/v2/slsa", `{"runSpec":{}}`,
			dep("pipelineTask", pipelines, otherCommit)+","+source), "", ledgertest.Commit},
		{"Tekton on Google Cloud Build", slsaV1, v1("https://cloud.google.com/build/gcb-buildtypes/google-builder/v1", config,
			dep("task", pipelines, otherCommit)+","+source), "", ledgertest.Commit},
		{"two inputs", slsaV1, v1(tekton, config, source+","+dep("inputs/result", pipelines, otherCommit)), "", several},
		{"two inputs, one of the repo", slsaV1, v1(tekton, config, source+","+dep("inputs/result", pipelines, otherCommit)),
			"https://github.com/acme/api", ledgertest.Commit},
		{"the pipeline alone", slsaV1, v1(tekton, config, pipeline), "", none},
		{"the pipeline alone, in the repo", slsaV1, v1(tekton, config, dep("pipeline", home, ledgertest.Commit)),
			"https://github.com/acme/api", ledgertest.Commit},
		{"the pipeline alone, in another repo", slsaV1, v1(tekton, config, pipeline), "https://github.com/acme/api", none},
		{"the pipeline at another commit of the repo", slsaV1, v1(tekton, config,
			dep("pipeline", home, otherCommit)+","+source), "https://github.com/acme/api", ledgertest.Commit},

		{"v0.2", slsaV02, v02("tekton.dev/v1beta1/PipelineRun", pipelines, otherCommit,
			dep("", pipelines, otherCommit)+","+dep("", home, ledgertest.Commit)), "", ledgertest.Commit},
		{"v0.2 of a task", slsaV02, v02("https://tekton.dev/attestations/chains@v2", pipelines, otherCommit,
			dep("", pipelines, otherCommit)+","+dep("", home, ledgertest.Commit)), "", ledgertest.Commit},
		{"v0.2, the pipeline alone", slsaV02, v02("tekton.dev/v1/TaskRun", pipelines, otherCommit,
			dep("", pipelines, otherCommit)), "", none},

		{"another builder: the source that it names", slsaV1, v1("https://x.example", `{"source":"`+pipelines+`"}`,
			dep("", pipelines, ledgertest.Commit)+","+dep("", home, otherCommit)), "", ledgertest.Commit},
		{"another builder: the web URL comes first", slsaV1, v1("https://x.example", `{"source":"`+pipelines+`"}`,
			dep("", pipelines, otherCommit)+","+dep("", home, ledgertest.Commit)), "https://github.com/acme/api",
			ledgertest.Commit},
		{"another builder: no dependency at the web URL", slsaV1, v1("https://x.example", `{"source":"`+home+`"}`,
			dep("", pipelines, otherCommit)+","+dep("", home, ledgertest.Commit)), "https://git.example/mirror",
			ledgertest.Commit},
		{"another builder, v0.2", slsaV02, v02("https://x.example", pipelines, otherCommit,
			dep("", pipelines, otherCommit)+","+dep("", home, ledgertest.Commit)), "https://github.com/acme/api",
			ledgertest.Commit},
	} {
		t.Run(test.name, func(t *testing.T) {
			payload := statementOf(`[{"name":"image","digest":{"sha256":"`+sha256Digest+`"}}]`, test.uri, test.predicate)
			got, err := parseStatement([]byte(payload), Place{WebURL: test.webURL})
			if !ledger.IsCommit(test.want) {
				ledgertest.WantCode(t, err, ledger.Code(test.want))
			} else if err != nil || got.commit != test.want {
				t.Errorf("got %s, %v; want %s", got.commit, err, test.want)
			} else if again, err := parseStatement([]byte(payload), Place{Recorded: test.want}); err != nil ||
				again.commit != test.want {
				t.Errorf("once it is recorded, got %s, %v; want %s", again.commit, err, test.want)
			} else if _, err := parseStatement([]byte(payload), Place{}); err != nil && !got.isPlaced {
				t.Errorf("it depends on the web URL: %v", err)
			}
		})
	}
}

// A recorded statement is about no commit that it does not name.
func TestRecordedStatementsNameTheirCommit(t *testing.T) {
	payload := statementOf(aboutCommit, anyType, `{}`)
	got, err := parseStatement([]byte(payload), Place{Recorded: otherCommit})
	if err != nil || got.commit != ledgertest.Commit {
		t.Errorf("got %s, %v", got.commit, err)
	}
	file := `[{"name":"api.tar","digest":{"sha1":"` + otherCommit + `"}},` +
		`{"digest":{"gitCommit":"` + ledgertest.Commit + `"}}]`
	got, err = parseStatement([]byte(statementOf(file, anyType, `{}`)), Place{Recorded: otherCommit})
	if err != nil || got.commit != ledgertest.Commit || got.isPlaced {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Statements whose meaning depends on the web URL say so, so that the write compares it.
func TestStatementsThatDependOnTheWebURL(t *testing.T) {
	two := `[{"uri":"git+https://git.example/acme/api","digest":{"gitCommit":"` + ledgertest.Commit + `"}},` +
		`{"uri":"git+https://git.example/acme/lib","digest":{"gitCommit":"` + otherCommit + `"}}]`
	several := []byte(statementOf(two, anyType, `{}`))
	got, err := parseStatement(several, Place{WebURL: "https://git.example/acme/lib"})
	if err != nil || got.commit != otherCommit || !got.isPlaced || !IsCommitPlaced(several) {
		t.Errorf("of several commits: got %+v, %v", got, err)
	}
	summary := statementOf(aboutCommit, vsaV1, `{"verificationResult":"PASSED","resourceUri":"git+https://x.example/y"}`)
	got, err = parseStatement([]byte(summary), Place{})
	if err != nil || !got.isPlaced || IsCommitPlaced([]byte(summary)) {
		t.Errorf("of a summary, whose commit is known: got %+v, %v", got, err)
	}
	witness := `[{"name":"https://witness.dev/attestations/git/v0.1/commithash:x","digest":{"sha1":"` + ledgertest.Commit +
		`"}},{"name":"https://witness.dev/attestations/git/v0.1/parenthash:y","digest":{"sha1":"` + otherCommit + `"}}]`
	got, err = parseStatement([]byte(statementOf(witness, anyType, `{}`)), Place{})
	if err != nil || got.isPlaced {
		t.Errorf("of witness: got %+v, %v", got, err)
	}
}

// A failure that somebody has made a statement without an outcome is found.
func TestRemapAgainOfAFailure(t *testing.T) {
	for uri, payload := range map[string]string{
		"https://witness.dev/attestation-collection/v0.1": `{"name":"x","attestations":[{"type":` +
			`"https://witness.dev/attestations/command-run/v0.1","attestation":{"exitcode":1}}]}`,
		vsaV1: `{"verificationResult":"FAILED","resourceUri":"git+https://github.com/acme/api"}`,
	} {
		envelope := ledgertest.Must(SignDSSE(ledgertest.NewP256(), []byte(statementOf(aboutCommit, uri, payload))))
		r := Recorded{Envelope: envelope, PredicateType: uri, Commit: ledgertest.Commit, Outcome: Unread(uri)}
		if got := RemapAgain(r).Outcome; got == r.Outcome {
			t.Errorf("%s: it is read as %+v", uri, got)
		}
	}
}

const sha256Digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// A statement recorded for a pipeline's commit keeps that commit, but no longer counts or links artifacts.
func TestRemapOfAStatementAboutAnotherCommit(t *testing.T) {
	image := `[{"name":"image","digest":{"sha256":"` + sha256Digest + `"}}]`
	deps := func(name string) string {
		return `{"buildDefinition":{"buildType":"https://tekton.dev/chains/v2/slsa","externalParameters":{},` +
			`"resolvedDependencies":[{"name":"` + name + `","uri":"git+https://github.com/acme/pipelines","digest":{"sha1":"` +
			ledgertest.Commit + `"}}]}}`
	}
	summary := `{"verificationResult":"PASSED","resourceUri":"git+https://github.com/fork/api"}`
	for _, test := range []struct {
		name, uri, payload, webURL string
		counts                     bool
	}{
		{"an input", slsaV1, statementOf(image, slsaV1, deps("inputs/result")), "", true},
		{"a pipeline", slsaV1, statementOf(image, slsaV1, deps("pipeline")), "", false},
		{"a pipeline in the repo", slsaV1, statementOf(image, slsaV1, deps("pipeline")), "https://github.com/acme/pipelines",
			true},
		{"a summary of a fork", vsaV1, statementOf(aboutCommit, vsaV1, summary), "https://github.com/acme/api", false},
		{"a summary without a web URL", vsaV1, statementOf(aboutCommit, vsaV1, summary), "", true},
	} {
		before := Outcome{Predicate: "build:default", Slot: "x", Result: ledger.Result{Status: ledger.Pass}}
		r := Recorded{Envelope: ledgertest.Must(SignDSSE(ledgertest.NewP256(), []byte(test.payload))),
			PredicateType: test.uri, Commit: ledgertest.Commit, WebURL: test.webURL, Outcome: before}
		got := Remap(r)
		failed := r
		failed.Outcome.Result.Status = ledger.Fail
		if m := Remap(failed); m.Outcome.Result.Status != ledger.Fail && !test.counts || len(m.Disowned) > 0 {
			t.Errorf("%s, as a failure: got %+v", test.name, m)
		}
		if counts := got.Outcome != Unread(test.uri); counts != test.counts {
			t.Errorf("%s: got %+v", test.name, got)
		}
		if !test.counts && test.uri == slsaV1 && (len(got.Disowned) != 1 || len(got.Artifacts.Digests) != 0) {
			t.Errorf("%s: got the artifacts %+v", test.name, got)
		}

		// RemapAgain does not know the web URL, and accepts either outcome.
		r.Outcome, r.WebURL = got.Outcome, ""
		if again := RemapAgain(r); again.Outcome != got.Outcome {
			t.Errorf("%s: again %+v, want %+v", test.name, again.Outcome, got.Outcome)
		}
	}
}
