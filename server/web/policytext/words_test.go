package policytext

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/policytest"
)

// markdown formats a sentence as Markdown.
func markdown(s Sentence) string {
	var b strings.Builder
	for _, p := range s {
		if p.Code {
			b.WriteString("`" + p.Text + "`")
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func parse(t *testing.T, document string) policy.Contract {
	t.Helper()
	return must.Get(policy.Parse([]byte(document)))(t)
}

func TestRequirementsInWords(t *testing.T) {
	for members, want := range map[string]string{
		`"predicate":"test:*"`: "Any `test:*` passes, signed by any trusted identity.",
		`"predicate":"test:go","signers":["cn=*,ou=build,o=acme"],"max_age":"168h"`: "`test:go` passes, signed by " +
			"`cn=*,ou=build,o=acme`, recorded within the last 7 days.",
		`"predicate":"review:*","threshold":2,"exclude_author":true`: "Any `review:*` passes, signed by 2 distinct " +
			"signers. Not by the author.",
		`"predicate":"scan","threshold":3,"signers":["ou=a","ou=b","ou=c"]`: "`scan` passes, signed by 3 distinct " +
			"signers matching `ou=a`, `ou=b` or `ou=c`.",
		`"predicate":"*","accept":["error","skip"],"max_age":"36h"`: "Any predicate errors or is skipped, signed by " +
			"any trusted identity, recorded within the last 36 hours.",
		`"predicate":"a","accept":["pass","warn","fail"],"max_age":"90s"`: "`a` passes, warns or fails, signed by any " +
			"trusted identity, recorded within the last 90 seconds.",
		`"type":"https://spdx.dev/Document","accept":["recorded"]`: "Type `https://spdx.dev/Document` is recorded, " +
			"signed by any trusted identity.",
		`"type":"https://slsa.dev/*"`: "Any type `https://slsa.dev/*` passes, signed by any trusted identity.",
		`"predicate":"a","paths":["services/**"]`: "`a` passes, signed by any trusted identity. Only for commits " +
			"that change `services/**`.",
		`"predicate":"a","branches":["main","release/*"]`: "`a` passes, signed by any trusted identity. Only for " +
			"commits that target `main` or `release/*`.",
		`"predicate":"a","paths":["x","y"],"branches":["main"]`: "`a` passes, signed by any trusted identity. Only " +
			"for commits that change `x` or `y` and target `main`.",
	} {
		c := parse(t, `{"requirements":[{"state":"ATTESTED",`+members+`}]}`)
		if got := markdown(describe(c.Requirements[0])); got != want {
			t.Errorf("%s\n got %s\nwant %s", members, got, want)
		}
	}
}

func TestTrustInWords(t *testing.T) {
	for members, want := range map[string]string{
		`"name":"second","predicate":"review:*"`: "`second`: Any `review:*` passes, signed by any trusted identity.",
		`"predicate":"review:*","exclude_author":true,"distinct_from":["ATTESTED"]`: "Any `review:*` passes, signed by " +
			"any trusted identity. Not by the author or people needed for Attested.",
		`"predicate":"deploy:prod","distinct_from":["PROMOTABLE","ATTESTED"],"max_age":"1h"`: "`deploy:prod` passes, " +
			"signed by any trusted identity, recorded within the last 1 hour. Not by people needed for Attested and " +
			"Promotable.",
		`"predicate":"review:*","signers":["ou=a","ou=b"],"passkey":true,"max_age":"1h"`: "Any `review:*` passes, signed " +
			"by `ou=a` or `ou=b`, confirmed by a passkey, recorded within the last 1 hour.",
		`"predicate":"review:*","covers":"change"`: "Any `review:*` passes, signed by any trusted identity. Covers the " +
			"change of a commit alone.",
		`"predicate":"a","where":"predicate.level\n  == 'high'"`: "`a` passes where `predicate.level == 'high'`, signed " +
			"by any trusted identity.",
	} {
		c := parse(t, `{"requirements":[{"state":"DEPLOYED",`+members+`}]}`)
		if got := markdown(describe(c.Requirements[0])); got != want {
			t.Errorf("%s\n got %s\nwant %s", members, got, want)
		}
	}

	for settings, want := range map[string]string{
		`"targets":"all"`: "A commit is meant for the default branch and every target claimed for it. No exceptions count.",
		`"targets":"claimed"`: "A commit is meant for every target claimed for it; until one is claimed, for the " +
			"default branch. No exceptions count.",
		`"exceptions":{"signers":["ou=a","ou=b"]}`: "A commit is meant for the default branch and every target claimed " +
			"for it. Exceptions count if signed by `ou=a` or `ou=b`, for at most 7 days.",
	} {
		c := parse(t, `{"requirements":[],`+settings+`}`)
		if got := markdown(Targets(c.Targets)) + " " + markdown(Exceptions(c.Exceptions)); got != want {
			t.Errorf("%s\n got %s\nwant %s", settings, got, want)
		}
	}
}

// The sentences of the default contract are short.
func TestDefaultContractInWords(t *testing.T) {
	var got []string
	for _, stage := range Stages(policy.Default()) {
		for _, s := range stage.Needs {
			got = append(got, markdown(s))
			for sentence := range strings.SplitSeq(markdown(s), ". ") {
				if n := len(strings.Fields(sentence)); n > 12 {
					t.Errorf("%d words: %s", n, sentence)
				}
			}
		}
	}
	const want = "`tests`: Any `test:*` passes, signed by any trusted identity. Carries from commits with the same " +
		"tree.\n" +
		"`review`: Any `review:*` passes, signed by any trusted identity. Not by the author or people needed for " +
		"Attested. Carries from commits with the same tree.\n" +
		"`deploy`: `deploy:prod` passes, signed by any trusted identity. Not by people needed for Promotable."
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// The order of the states in words is that in which a commit reaches them.
func TestChangesByTopic(t *testing.T) {
	before := parse(t, `{"requirements":[{"state":"DEPLOYED","predicate":"a"}]}`)
	after := parse(t, `{"requirements":[{"state":"ATTESTED","predicate":"b"}],"targets":"claimed",`+
		`"exceptions":{"signers":["cn=x"]},"radar":{"enabled":false}}`)
	var got string
	for _, c := range Changes(before, after) {
		got += c.Sign + c.Topic + " "
	}
	const want = "+Attested -Deployed -Targets +Targets -Exceptions +Exceptions -Radar -Radar -Radar +Radar "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRadarInWords(t *testing.T) {
	for settings, want := range map[string]string{
		`{}`: "Overlaps at `LOW` or above create an event. Overlaps do not keep commits from becoming Promotable. " +
			"A commit is in flight for at most 30 days.",
		`{"enabled":false}`: "Conflict Radar is off: commits are not compared.",
		`{"notify":"MEDIUM","block":"HIGH","ignore":["**/go.sum","docs/**"],"max_age":"1h"}`: "Overlaps at `MEDIUM` " +
			"or above create an event. `HIGH` overlaps keep the later commit from becoming Promotable. " +
			"A commit is in flight for at most 1 hour. Ignored: `**/go.sum` and `docs/**`.",
	} {
		var sentences []string
		for _, s := range Radar(parse(t, `{"requirements":[],"radar":`+settings+`}`).Radar) {
			sentences = append(sentences, markdown(s))
		}
		if got := strings.Join(sentences, " "); got != want {
			t.Errorf("%s\n got %s\nwant %s", settings, got, want)
		}
	}
}

func TestStatesInWords(t *testing.T) {
	stages := Stages(parse(t, `{"requirements":[{"state":"DEPLOYED","predicate":"b"},{"state":"ATTESTED",`+
		`"predicate":"a"},{"state":"DEPLOYED","predicate":"c"}]}`))
	var got string
	for _, s := range stages {
		got += s.State.String() + ":"
		for _, need := range s.Needs {
			got += " " + markdown(need)
		}
		got += "\n"
	}
	const want = "ATTESTED: `a` passes, signed by any trusted identity.\nPROMOTABLE:\n" +
		"DEPLOYED: `b` passes, signed by any trusted identity. `c` passes, signed by any trusted identity.\n"
	if got != want {
		t.Errorf("stages:\n%swant\n%s", got, want)
	}
}

// A change without a sentence would be saved without being shown.
func TestChangesShowEveryChange(t *testing.T) {
	policytest.EachVariant(t, func(t *testing.T, base, variant policy.Contract) {
		if len(Changes(base, variant)) == 0 {
			t.Error("Changes returned nothing")
		}
	})
}
