package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func mustDN(t *testing.T, text string) identity.DN {
	t.Helper()
	return must.Get(identity.ParseDN(text))(t)
}

// A requirement says why a merge that is claimed carries nothing: the claim came too early, or
// is by somebody else.
func TestReasonNamesUselessClaims(t *testing.T) {
	c, err := Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:go","signers":["cn=ci"],
		"carry":["merge"],"carry_signers":["cn=queue"]}]}`))
	must.OK(t, err)
	source := Source{Commit: strings.Repeat("a", 40), Authorship: authors.Authorship{Proven: true}}
	early := MergeClaim{Attestation: "att_1", Signer: mustDN(t, "cn=queue"), ParentState: ledger.Validating}
	inTime := MergeClaim{Attestation: "att_2", Signer: mustDN(t, "cn=queue"), ParentState: ledger.Attested}
	other := MergeClaim{Attestation: "att_3", Signer: mustDN(t, "cn=mallory"), ParentState: ledger.Promotable}

	const (
		tooEarly = "nothing carries from aaaaaaaaaaaa, because the first parent was VALIDATING when cn=queue claimed the " +
			"merge: once it is ATTESTED, claim the merge again"
		byOthers = "nothing carries from aaaaaaaaaaaa, because carry_signers has no pattern for cn=mallory, who claims the " +
			"merge"
	)
	for name, test := range map[string]struct {
		claims   []MergeClaim
		sameTree bool
		want     string
	}{
		"too early":          {claims: []MergeClaim{early}, want: tooEarly},
		"same tree as well":  {claims: []MergeClaim{early}, sameTree: true, want: tooEarly},
		"by others":          {claims: []MergeClaim{other}, want: byOthers},
		"early, and by both": {claims: []MergeClaim{other, early}, want: tooEarly},
		"in time":            {claims: []MergeClaim{early, other, inTime}},
		"no claim":           {},
	} {
		t.Run(name, func(t *testing.T) {
			s := source
			s.Claims, s.SameTree = test.claims, test.sameTree
			derived := c.Derive(Facts{Proven: true, Attested: true, Sources: []Source{s}}, 1)
			reason := derived.Requirements[0].Reason
			if test.want == "" && strings.Contains(reason, "nothing carries") || !strings.Contains(reason, test.want) {
				t.Errorf("reason %q, want %q", reason, test.want)
			}
		})
	}
}

// A requirement names the commit with the same tree whose review is about another change.
func TestReasonNamesAReviewOfAnotherChange(t *testing.T) {
	c := mustParse(t, `{"state":"PROMOTABLE","predicate":"review:*","covers":"change","carry":["tree"]}`)
	review := signed(bob, "review:code", ledger.Pass)
	review.Source, review.Base = 1, "base"
	for contains, want := range map[bool]string{
		false: "nothing carries from aaaaaaaaaaaa (the same tree)", true: "met by",
	} {
		f := Facts{Proven: true, Attested: true, Carried: []Evidence{review}, Sources: []Source{{
			Commit: strings.Repeat("a", 40), Authorship: proven(), SameTree: true, Bases: map[string]bool{"base": contains},
			Spans: map[string]*authors.Authorship{"base": {}},
		}}}
		if got := c.Derive(f, policyNow).Requirements[0].Reason; !strings.Contains(got, want) {
			t.Errorf("contained %t: %q, want %q", contains, got, want)
		}
	}
}

// A requirement names all whose failures block it, each once.
func TestFailedBy(t *testing.T) {
	c := mustParse(t, `{"state":"ATTESTED","predicate":"test:*"}`)
	f := attested(signed(ci2, "test:go", ledger.Fail), signed(ci, "test:go", ledger.Fail),
		signed(ci, "test:js", ledger.Errored), signed(ops, "test:go", ledger.Pass), signed(ci2, "test:js", ledger.Fail))
	if got, want := c.Derive(f, policyNow).Requirements[0].FailedBy, []string{ci, ci2}; !slices.Equal(got, want) {
		t.Errorf("failed by %q, want %q", got, want)
	}
}

// An unmet requirement names the evidence that does not count, because its key was
// compromised.
func TestReasonNamesDistrustedEvidence(t *testing.T) {
	c, err := Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"},
		{"state":"ATTESTED","predicate":"build:x"},{"state":"ATTESTED","predicate":"test:go","paths":["a"]}]}`))
	must.OK(t, err)
	pass := ledger.Result{Status: ledger.Pass}
	attestations := []ledger.AttestationRecord{
		{Predicate: "test:go", Identity: "cn=ci", Result: pass, Distrusted: true},
		{Predicate: "test:js", Identity: "cn=ci", Result: pass},
		{Predicate: "test:go", Identity: "cn=ci", Result: pass, Distrusted: true},
		{Predicate: "scan:x", Identity: "cn=ci", Result: pass, Distrusted: true},
	}
	var f Facts
	signChanges(&f, "b")
	statuses := c.Derive(f, 1).Requirements
	before := []string{statuses[0].Reason, statuses[1].Reason, statuses[2].Reason}
	c.NoteDistrusted(statuses, attestations)
	want := before[0] + "; distrusted, because the key was compromised: test:go passed (cn=ci)"
	if statuses[0].Reason != want {
		t.Errorf("reason %q, want %q", statuses[0].Reason, want)
	}
	if statuses[1].Reason != before[1] || statuses[2].Reason != before[2] {
		t.Errorf("%q and %q are about other evidence, or do not apply", statuses[1].Reason, statuses[2].Reason)
	}

	statuses[0].Met, statuses[0].Reason = true, "met"
	if c.NoteDistrusted(statuses, attestations); statuses[0].Reason != "met" {
		t.Errorf("reason %q", statuses[0].Reason)
	}
}
