package policy

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func TestDistinctFrom(t *testing.T) {
	c := mustParse(t,
		`{"state":"ATTESTED","predicate":"test:*"}`,
		`{"state":"ATTESTED","predicate":"lint:*"}`,
		`{"state":"PROMOTABLE","predicate":"review:*","distinct_from":["ATTESTED"]}`,
		`{"state":"DEPLOYED","predicate":"deploy:*","distinct_from":["PROMOTABLE"]}`)

	// Each word is a person with the predicates that the person passed.
	for name, test := range map[string]struct {
		people string
		state  ledger.State
		reason string // of the first requirement that is not met
	}{
		"one person for all": {"ann:test,lint,review,deploy", ledger.Attested,
			"review:*: 1 of 1 signatures (cn=ann); " +
				"1 more person is needed, who is not needed for ATTESTED"},
		"one for the checks, one for the review": {"ci:test,lint ann:review", ledger.Promotable,
			"deploy:*: 0 of 1 signatures"},
		"a review by one of two who tested": {"ci:test,lint ann:test,review", ledger.Promotable, "deploy:*: 0 of 1"},
		"both did both": {"ci:test,lint,review ann:test,lint,review", ledger.Promotable,
			"deploy:*: 0 of 1"},
		"the reviewer is needed for one of the checks": {"ci:test ann:lint,review", ledger.Attested,
			"1 more person is needed, who is not needed for ATTESTED"},
		"the reviewer deploys": {"ci:test,lint ann:review,deploy", ledger.Promotable,
			"1 more person is needed, who is not needed for PROMOTABLE"},
		"the tester deploys": {"ci:test,lint,deploy ann:review", ledger.Deployed, ""},
		"the tester's review does not free the reviewer to deploy": {"ci:test,lint,review ann:review,deploy",
			ledger.Promotable, "1 more person is needed, who is not needed for PROMOTABLE"},
		"a second reviewer frees the first to deploy": {"ci:test,lint ann:review,deploy bob:review", ledger.Deployed, ""},
		"a review before the tests":                   {"ann:review", ledger.Validating, "test:*: 0 of 1 signatures"},
	} {
		t.Run(name, func(t *testing.T) {
			var evidence []Evidence
			for person := range strings.FieldsSeq(test.people) {
				who, what, _ := strings.Cut(person, ":")
				for predicate := range strings.SplitSeq(what, ",") {
					evidence = append(evidence, signed("cn="+who, predicate+":x", ledger.Pass))
				}
			}
			d := c.Derive(attested(evidence...), policyNow)
			if d.State != test.state {
				t.Errorf("state %s, want %s", d.State, test.state)
			}
			reason := ""
			for _, r := range d.Requirements {
				if !r.Met && reason == "" {
					reason = r.Reason
				}
			}
			if (reason == "") != (test.reason == "") || !strings.Contains(reason, test.reason) {
				t.Errorf("reason %q, want %q", reason, test.reason)
			}
		})
	}
}

// An additional pass by somebody new never lowers the state.
func TestMoreSignaturesTakeNoStateAway(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		now := drawNow(t)
		before, _ := c.State(f, now)

		e := drawEvidence(t)
		e.Status, e.Attestation, e.Distrusted = ledger.Pass, "att_z", false
		if rapid.Bool().Draw(t, "somebody new") {
			e.Signer, e.Person = identity.DN{CN: "new", OU: "build", O: "acme"}, 99
		}
		f.Evidence = append(f.Evidence, e)
		f.Attested = true
		for _, expression := range []string{"type == 'x'", "type == 'y'"} {
			f.Verdicts.Add(expression, e.Attestation, Verdict{True: true})
		}
		if after, _ := c.State(f, now); after < before && e.Person == 99 {
			t.Errorf("from %s to %s by a pass", before, after)
		}
	})
}

// The search for distinct people gives up at its limit, and says so.
func TestDistinctPeopleAreLimited(t *testing.T) {
	var requirements []string
	var evidence []Evidence
	for i := range 60 {
		requirements = append(requirements,
			fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:%d","threshold":3}`, i),
			fmt.Sprintf(`{"state":"PROMOTABLE","predicate":"review:%d","threshold":3,"distinct_from":["ATTESTED"]}`, i))
	}
	for person := range 100 {
		for i := range 5 {
			n := (person*7 + i*person) % 60
			evidence = append(evidence, signed(fmt.Sprintf("cn=p%d", person), fmt.Sprintf("test:%d", n), ledger.Pass),
				signed(fmt.Sprintf("cn=p%d", person), fmt.Sprintf("review:%d", (n+i)%60), ledger.Pass))
		}
	}

	c := mustParse(t, requirements...)
	d := c.Derive(attested(evidence...), policyNow)
	v := c.evaluate(&Facts{Evidence: attested(evidence...).Evidence}, policyNow)
	if v.search == nil {
		t.Fatal("no search")
	}
	t.Log(d.Requirements[1].Reason)
	for _, r := range d.Requirements {
		if r.Met && r.State == ledger.Promotable {
			t.Errorf("%s is met", r.Predicate)
		}
	}
}
