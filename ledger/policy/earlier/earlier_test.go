package earlier

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

const (
	bob = "cn=bob,ou=dev,o=acme"
	ci  = "cn=ci,ou=build,o=acme"
	now = ledger.Time(1795424400000)
)

// contract returns a contract with requirements.
func contract(t *testing.T, requirements ...string) *policy.Contract {
	t.Helper()
	c := must.Get(policy.Parse([]byte(`{"requirements":[` + strings.Join(requirements, ",") + `]}`)))(t)
	return &c
}

// statusesOf returns what a contract says of a commit of a branch, by who has reviewed it.
func statusesOf(t *testing.T, c *policy.Contract, reviewers ...string) []ledger.RequirementStatus {
	t.Helper()
	f := policy.Facts{Branch: "topic", Targets: []string{"main"}, Attested: true,
		Authors: []ledger.Author{{Name: "Alice", Email: "alice@acme.org"}}, KnownAuthors: []string{"alice"}}
	for _, dn := range reviewers {
		signer := must.Get(identity.ParseDN(dn))(t)
		f.Evidence = append(f.Evidence, policy.Evidence{Predicate: "review:code", Signer: signer, Status: ledger.Pass})
	}
	return c.Derive(f, now).Requirements
}

// The reason of a missing review names the newest commit of the branch that has it, and why it does not count.
func TestReasonNamesTheReviewOfAnEarlierCommit(t *testing.T) {
	const (
		review  = `{"state":"PROMOTABLE","predicate":"review:*","carry":["tree"]}`
		tree    = "; aaaaaaaaaaaa, an earlier commit of the branch, was reviewed by cn=bob,ou=dev,o=acme, "
		another = tree + "but has another tree"
	)
	of := func(name, tree string, signers ...string) Commit {
		return Commit{SHA: strings.Repeat(name, 40), Tree: tree,
			Requirements: []ledger.RequirementStatus{{SignersCounted: signers}}}
	}

	for name, test := range map[string]struct {
		requirement string
		reviewer    string
		tree        string
		earlier     []Commit
		want        string
	}{
		"rebased":              {review, "", "2", []Commit{of("a", "1", bob)}, another},
		"the newest":           {review, "", "2", []Commit{of("a", "1", bob), of("b", "1", bob)}, another},
		"an older one":         {review, "", "2", []Commit{of("b", "1"), of("a", "1", bob)}, another},
		"nobody":               {review, "", "2", []Commit{of("a", "1")}, ""},
		"the same tree":        {review, "", "1", []Commit{of("a", "1", bob)}, ""},
		"an unknown tree":      {review, "", "", []Commit{of("a", "1", bob)}, tree + "but not both trees are known"},
		"another's is unknown": {review, "", "1", []Commit{of("a", "", bob)}, tree + "but not both trees are known"},
		"the same tree, without carry": {`{"state":"PROMOTABLE","predicate":"review:*"}`, "", "1",
			[]Commit{of("a", "1", bob)}, tree + "but the requirement does not carry"},
		"another tree, without carry": {`{"state":"PROMOTABLE","predicate":"review:*"}`, "", "2",
			[]Commit{of("a", "1", bob)}, another},
		"not for reviews": {`{"state":"PROMOTABLE","predicate":"test:*"}`, "", "2", []Commit{of("a", "1", bob)}, ""},
		"not by the author": {`{"state":"PROMOTABLE","predicate":"approval:*","exclude_author":true}`, "", "2",
			[]Commit{of("a", "1", bob)}, strings.Replace(another, "reviewed", "signed", 1)},
		"not by the author, for reviews": {`{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true}`, "", "2",
			[]Commit{of("a", "1", bob)}, another},
		"a deployment": {`{"state":"DEPLOYED","predicate":"deploy:*","exclude_author":true}`, "", "2",
			[]Commit{of("a", "1", bob)}, ""},
		"elsewhere": {`{"state":"PROMOTABLE","predicate":"review:*","branches":["release/*"]}`, "", "2",
			[]Commit{of("a", "1", bob)}, ""},
		"met": {review, ci, "2", []Commit{of("a", "1", bob)}, ""},
		"one of two, by another": {`{"state":"PROMOTABLE","predicate":"review:*","threshold":2}`,
			ci, "2", []Commit{of("a", "1", ci, bob)}, another},
		"one of two, by the same": {`{"state":"PROMOTABLE","predicate":"review:*","threshold":2}`,
			bob, "2", []Commit{of("a", "1", bob)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := contract(t, test.requirement)
			statuses := statusesOf(t, c, strings.Fields(test.reviewer)...)
			before := statuses[0].Reason
			if MissesReview(c, statuses) {
				Note(c, statuses, test.tree, slices.Values(test.earlier))
			}
			got, ok := strings.CutPrefix(statuses[0].Reason, before)
			if !ok || !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("reason %q, want %q added to %q", statuses[0].Reason, test.want, before)
			}
		})
	}
}

// Earlier commits take time to derive. So they are taken only until each missing review is explained.
func TestNoMoreEarlierCommitsAreTakenThanNeeded(t *testing.T) {
	c := contract(t, `{"state":"PROMOTABLE","predicate":"review:*"}`,
		`{"state":"PROMOTABLE","predicate":"review:security"}`)
	list := []Commit{
		{Requirements: []ledger.RequirementStatus{{}, {}}},
		{Requirements: []ledger.RequirementStatus{{SignersCounted: []string{bob}}, {}}},
		{Requirements: []ledger.RequirementStatus{{SignersCounted: []string{bob}}, {SignersCounted: []string{bob}}}},
		{},
	}
	for i := range list {
		list[i].Tree = "1"
	}

	taken := 0
	count := func(yield func(Commit) bool) {
		slices.Values(list)(func(e Commit) bool { taken++; return yield(e) })
	}
	statuses := statusesOf(t, c)
	Note(c, statuses, "2", count)
	if taken != 3 {
		t.Errorf("%d commits were taken, want 3", taken)
	}
	for _, s := range statuses {
		if strings.Count(s.Reason, "an earlier commit") != 1 {
			t.Errorf("reason %q", s.Reason)
		}
	}
}
