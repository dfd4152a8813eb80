package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

func TestDecideListsWhatCountsForRequirementsThatAreMet(t *testing.T) {
	c, err := Parse([]byte(`{"exceptions":{"signers":["cn=ops"]},"requirements":[
		{"state":"ATTESTED","name":"tests","predicate":"test:*"},
		{"state":"ATTESTED","predicate":"build:*","carry":["merge"],"carry_signers":["cn=ops"]},
		{"state":"PROMOTABLE","name":"review","predicate":"review:*","threshold":2},
		{"state":"PROMOTABLE","name":"scan","predicate":"scan:*"},
		{"state":"PROMOTABLE","name":"docs","predicate":"docs:*","branches":["release/*"]}]}`))
	must.OK(t, err)
	with := func(id string, e Evidence) Evidence { e.Attestation = id; return e }
	carried := with("att_5", signed(ci, "build:go", ledger.Pass))
	carried.Source = 1
	f := attested(
		with("att_1", signed(ci, "test:go", ledger.Pass)),
		with("att_2", signed(ci2, "test:go", ledger.Skip)), // not accepted
		with("att_3", signed(bob, "review:code", ledger.Pass)),
		with("att_4", signed(ci, "docs:all", ledger.Pass)),
	)
	f.Carried, f.Proven = []Evidence{carried}, true
	f.Sources = []Source{{Commit: strings.Repeat("a", 40), Authorship: proven(), Claims: []MergeClaim{
		{Attestation: "att_6", Signer: mustDN(t, ops), ParentState: ledger.Promotable}}}}
	f.Exceptions = []Exception{{Attestation: "att_7", Requirement: "scan", Signer: mustDN(t, ops),
		RecordedAt: policyNow - hour, Until: policyNow + hour}}

	var lines []string
	decided := c.Decide(f, policyNow)
	for _, c := range decided.Counted {
		lines = append(lines, fmt.Sprint(c.State, " ", c.Name, " ", strings.Join(c.Attestations, " ")))
	}
	want := "ATTESTED tests att_1; ATTESTED build:* att_5 att_6; PROMOTABLE scan att_7"
	if got := strings.Join(lines, "; "); got != want {
		t.Errorf("what counts is %s\nwant %s", got, want)
	}
	d := c.Derive(f, policyNow)
	if decided.State != ledger.Attested || d.State != decided.State || d.Expires != decided.Expires {
		t.Errorf("the state is %s until %s, want that of Derive: %s until %s", decided.State, decided.Expires, d.State,
			d.Expires)
	}
	if decided.Standing != ledger.Attested || d.Standing != decided.Standing {
		t.Errorf("the standing is %s, and by Derive %s, want ATTESTED", decided.Standing, d.Standing)
	}
}
