package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
)

// proven returns the authorship of a proven commit without authors.
func proven() authors.Authorship { return authors.Authorship{Proven: true} }

// Carried evidence that counted is, once it is too old, as if it had never been: the same
// person's evidence for another artifact counts alone. Carried evidence that did not count for
// another reason goes on hiding it: no state rises by waiting.
func TestOldCarriedEvidenceOfAnotherSlot(t *testing.T) {
	c, err := Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"scan:image","accept":["pass"],
		"carry":["tree"],"where":"predicate.deep"}]}`))
	must.OK(t, err)
	const day, month = ledger.Time(24 * 3600 * 1000), 30
	ci := mustDN(t, "cn=ci")

	for name, test := range map[string]struct {
		status ledger.Status
		deep   bool
		want   string // the state by day 1, 29 and 31
	}{
		"good":         {ledger.Pass, true, "PROMOTABLE PROMOTABLE PROMOTABLE"},
		"not accepted": {ledger.Warn, true, "VALIDATING VALIDATING VALIDATING"},
		"not so deep":  {ledger.Pass, false, "VALIDATING VALIDATING VALIDATING"},
		"failed":       {ledger.Fail, true, "VALIDATING VALIDATING VALIDATING"},
	} {
		t.Run(name, func(t *testing.T) {
			own := Evidence{Attestation: "att_2", Predicate: "scan:image", Slot: "b", Signer: ci, Status: ledger.Pass}
			carried := Evidence{Attestation: "att_1", Predicate: "scan:image", Slot: "a", Signer: ci, Status: test.status,
				RecordedAt: 1, Source: 1}
			f := Facts{Proven: true, Attested: true, Evidence: []Evidence{own}, Carried: []Evidence{carried},
				Sources:  []Source{{Commit: strings.Repeat("a", 40), Authorship: proven(), SameTree: true}},
				Verdicts: Verdicts{"predicate.deep": {"att_1": {True: test.deep}, "att_2": {True: true}}}}
			var states []string
			for _, days := range []ledger.Time{1, month - 1, month + 1} {
				f.Evidence[0].RecordedAt = days * day // of its own, it is never too old
				states = append(states, c.Derive(f, days*day+1).State.String())
			}
			if got := strings.Join(states, " "); got != test.want {
				t.Errorf("states %s, want %s", got, test.want)
			}
		})
	}
}

// Without a max_age, evidence carries if it was at most 30 days old when the ledger first learnt of the
// commit, and does not age from then on. A max_age goes on.
func TestCarriedEvidenceDoesNotAge(t *testing.T) {
	const day = ledger.Time(24 * 3600 * 1000)
	for _, test := range []struct {
		registered ledger.Time // days after the review
		later      ledger.Time // days after that
		maxAge     string
		want       ledger.State
	}{
		{0, 0, "", ledger.Promotable},
		{30, 400, "", ledger.Promotable},
		{31, 0, "", ledger.Attested},
		{-5, 40, "", ledger.Promotable}, // the commit was there before
		{1, 5, `,"max_age":"168h"`, ledger.Promotable},
		{1, 7, `,"max_age":"168h"`, ledger.Attested},
	} {
		c := mustParse(t, `{"state":"PROMOTABLE","predicate":"review:*","carry":["tree"]`+test.maxAge+`}`)
		review := signed(bob, "review:code", ledger.Pass)
		review.Source, review.RecordedAt = 1, 100*day
		f := attested()
		f.Sources = []Source{{Commit: strings.Repeat("a", 40), Authorship: authors.Authorship{Proven: true}, SameTree: true}}
		f.Carried, f.RegisteredAt = []Evidence{review}, (100+test.registered)*day
		if got, _ := c.State(f, f.RegisteredAt+test.later*day); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// A review that a passkey has confirmed carries. The latest review of a person decides, also if it is
// about another commit.
func TestPasskeysCarry(t *testing.T) {
	c := mustParse(t, `{"state":"PROMOTABLE","predicate":"review:*","passkey":true,"carry":["tree"]}`)
	review := signed(bob, "review:code", ledger.Pass)
	for name, test := range map[string]struct {
		own, carried []Evidence
		want         ledger.State
	}{
		"confirmed":     {nil, []Evidence{review.confirmed()}, ledger.Promotable},
		"not confirmed": {nil, []Evidence{review}, ledger.Attested},
		"confirmed here, and later not there": {
			[]Evidence{review.confirmed().as("1")}, []Evidence{review.as("2")}, ledger.Attested},
		"not confirmed here, but later there": {
			[]Evidence{review.as("1")}, []Evidence{review.confirmed().as("2")}, ledger.Promotable},
	} {
		t.Run(name, func(t *testing.T) {
			f := attested(test.own...)
			f.Sources = []Source{{Commit: strings.Repeat("a", 40), Authorship: authors.Authorship{Proven: true}, SameTree: true}}
			for _, e := range test.carried {
				e.Source = 1
				f.Carried = append(f.Carried, e)
			}
			if got := c.Derive(f, policyNow); got.State != test.want {
				t.Errorf("%s, want %s: %s", got.State, test.want, got.Requirements[0].Reason)
			}
		})
	}
}

// A contract that somebody has indented is the same contract.
func TestCarryRuleWithBlanks(t *testing.T) {
	for rule, text := range map[CarryRule]string{
		0: "[ ]", CarryTree: "[\n  \"tree\"\n]", CarryTree | CarryMerge: `[ "tree", "merge" ]`,
	} {
		var got CarryRule
		if err := got.UnmarshalJSON([]byte(text)); err != nil || got != rule {
			t.Errorf("%s: %v, %v, want %v", text, got, err, rule)
		}
	}
	for _, text := range []string{`["merge", "tree"]`, `["trees"]`, `"tree"`, `[`, ""} {
		if err := new(CarryRule).UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// If more names than a commit may have signed what might carry, only failures do.
func TestEvidenceOfTooManySignersDoesNotCarry(t *testing.T) {
	c := mustParse(t, `{"state":"PROMOTABLE","predicate":"test:*","carry":["tree"]}`)
	for name, test := range map[string]struct {
		signers int
		status  ledger.Status // of the last
		want    string        // what the reason has
	}{
		"as many as may":         {MaxSigners, ledger.Pass, "and 77 more, carried from aaaaaaaaaaaa"},
		"one more":               {MaxSigners + 1, ledger.Pass, "only failures carry: more than 80 names have signed"},
		"one more, who reported": {MaxSigners + 1, ledger.Fail, "test:x failed (cn=signer-80)"},
	} {
		f := Facts{Proven: true, Sources: []Source{
			{Commit: strings.Repeat("a", 40), Authorship: proven(), SameTree: true},
		}}
		for i := range test.signers {
			e := signed(fmt.Sprintf("cn=signer-%d", i), "test:x", ledger.Pass)
			e.Attestation, e.Source = fmt.Sprintf("att_%04d", i), 1
			f.Carried = append(f.Carried, e)
		}
		f.Carried[test.signers-1].Status = test.status
		if r := c.Derive(f, policyNow).Requirements[0]; !strings.Contains(r.Reason, test.want) {
			t.Errorf("%s: %q, want %q", name, r.Reason, test.want)
		}
	}
}
