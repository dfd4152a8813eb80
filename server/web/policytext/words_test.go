package policytext

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/policytest"
)

// plain writes a sentence as Markdown would have it.
func plain(s Sentence) string {
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

func contractOf(t *testing.T, document string) policy.Contract {
	t.Helper()
	c, err := policy.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRequirementsInWords(t *testing.T) {
	for members, want := range map[string]string{
		`"predicate":"test:*"`: "A pass of any `test:*` by anyone trusted.",
		`"predicate":"test:go","signers":["cn=*,ou=build,o=acme"],"max_age":"168h"`: "A pass of `test:go` by " +
			"`cn=*,ou=build,o=acme`, recorded within the last 7 days.",
		`"predicate":"review:*","threshold":2,"exclude_author":true`: "A pass of any `review:*` by 2 different " +
			"signers, other than the commit's author.",
		`"predicate":"scan","threshold":3,"signers":["ou=a","ou=b","ou=c"]`: "A pass of `scan` by 3 different signers, " +
			"each of them `ou=a`, `ou=b` or `ou=c`.",
		`"predicate":"*","accept":["error","skip"],"max_age":"36h"`: "An error or skip of any predicate by " +
			"anyone trusted, recorded within the last 36 hours.",
		`"predicate":"a","accept":["pass","warn","skip"],"max_age":"90s"`: "A pass, warn or skip of `a` by anyone " +
			"trusted, recorded within the last 90 seconds.",
		`"predicate":"a","paths":["services/**"]`: "A pass of `a` by anyone trusted. Only for commits " +
			"that change `services/**`.",
		`"predicate":"a","branches":["main","release/*"]`: "A pass of `a` by anyone trusted. Only for commits " +
			"meant for `main` or `release/*`.",
		`"predicate":"a","paths":["x","y"],"branches":["main"]`: "A pass of `a` by anyone trusted. Only for commits " +
			"that change `x` or `y` and are meant for `main`.",
	} {
		c := contractOf(t, `{"requirements":[{"state":"ATTESTED",`+members+`}]}`)
		if got := plain(describe(c.Requirements[0])); got != want {
			t.Errorf("%s\n is %s\nwant %s", members, got, want)
		}
	}
}

func TestRadarInWords(t *testing.T) {
	for settings, want := range map[string]string{
		`{}`: "Overlaps of commits in flight make an event from `LOW` up. None keeps a commit from " +
			"being promotable. A commit counts as in flight for 30 days.",
		`{"enabled":false}`: "Conflict Radar is off: overlaps of commits are not looked for.",
		`{"notify":"MEDIUM","block":"HIGH","ignore":["**/go.sum","docs/**"],"max_age":"1h"}`: "Overlaps of commits in " +
			"flight make an event from `MEDIUM` up. " +
			"From `HIGH` up, the commit registered later is not promotable. A commit counts as in flight for 1 hour. Left " +
			"out are `**/go.sum` and `docs/**`.",
	} {
		var told []string
		for _, s := range Radar(contractOf(t, `{"requirements":[],"radar":`+settings+`}`).Radar) {
			told = append(told, plain(s))
		}
		if got := strings.Join(told, " "); got != want {
			t.Errorf("%s\n is %s\nwant %s", settings, got, want)
		}
	}
}

func TestStatesInWords(t *testing.T) {
	stages := Stages(contractOf(t, `{"requirements":[{"state":"DEPLOYED","predicate":"b"},{"state":"ATTESTED",`+
		`"predicate":"a"},{"state":"DEPLOYED","predicate":"c"}]}`))
	var told string
	for _, s := range stages {
		told += s.State.String() + ":"
		for _, need := range s.Needs {
			told += " " + plain(need)
		}
		told += "\n"
	}
	const want = "ATTESTED: A pass of `a` by anyone trusted.\nPROMOTABLE:\nDEPLOYED: A pass of `b` by anyone " +
		"trusted. A pass of `c` by anyone trusted.\n"
	if told != want {
		t.Errorf("the states are\n%swant\n%s", told, want)
	}
}

// A change that the words left out would be saved without being shown.
func TestChangesShowEveryChange(t *testing.T) {
	policytest.EachVariant(t, func(t *testing.T, base, variant policy.Contract) {
		if len(Changes(base, variant)) == 0 {
			t.Error("no change is shown")
		}
	})
}
