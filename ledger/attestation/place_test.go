package attestation

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A summary of another repository than the repo's is refused. That of an artifact is not.
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
		{"https://gitlab.com/acme/team/api", "https://gitlab.com/acme/other/api", true},
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

// Subjects of other tools name a commit by its SHA-1.
func TestSubjectsOfOtherTools(t *testing.T) {
	place := Place{WebURL: "https://git.example.com/acme/api"}
	for name, isCommit := range map[string]bool{
		"git.head":                            true, // Chainloop
		"https://github.com/acme/api.git":     true, // gitsign, by the URL of the remote
		"https://github.com/acme/api":         true,
		"git@github.com:acme/api.git":         true,
		"ssh://git@git.example.com:22/x/y":    true,
		"https://gitlab.com/acme/team/api":    true,
		"https://git.example.com/acme/api":    true, // the repo's web URL
		"https://git.example.com/acme/other":  false,
		"https://github.com/acme":             false,
		"https://github.com/acme/api/a/b.tar": false,
		"https://example.com/api.tar.gz":      false,
		"api.tar.gz":                          false,
		"app@sha256:abc":                      false,
		"head":                                false,
	} {
		payload := statementOf(`[{"name":"`+name+`","digest":{"sha1":"`+ledgertest.Commit+`"}}]`, anyType, `{}`)
		got, err := parseStatement([]byte(payload), place)
		if (err == nil) != isCommit || isCommit && got.commit != ledgertest.Commit {
			t.Errorf("%s: got %s, %v", name, got.commit, err)
		}
	}
}

// Chainloop's type is no URI, and is recorded. Types without their scheme are refused.
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

// Tekton's pipeline is not what was built, and the web URL of the repo decides between several sources.
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
			}
		})
	}
}

const sha256Digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// What was recorded about the commit of a pipeline stays recorded there, and neither counts nor links.
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
		if counts := got.Outcome != Unread(test.uri); counts != test.counts {
			t.Errorf("%s: got %+v", test.name, got)
		}
		if !test.counts && test.uri == slsaV1 && (len(got.Disowned) != 1 || len(got.Artifacts.Digests) != 0) {
			t.Errorf("%s: got the artifacts %+v", test.name, got)
		}

		// Without the web URL, what was made of it is one of what may have been made.
		r.Outcome, r.WebURL = got.Outcome, ""
		if again := RemapAgain(r); again.Outcome != got.Outcome {
			t.Errorf("%s: again %+v, want %+v", test.name, again.Outcome, got.Outcome)
		}
	}
}
