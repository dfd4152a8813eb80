package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// The reason of a missing review names the newest commit of the branch that has it, and why it does not count.
func TestReasonNamesTheReviewOfAnEarlierCommit(t *testing.T) {
	const (
		review  = `{"state":"PROMOTABLE","predicate":"review:*","carry":["tree"]}`
		tree    = "; aaaaaaaaaaaa, an earlier commit of the branch, was reviewed by cn=bob,ou=dev,o=acme, "
		another = tree + "but has another tree"
	)
	of := func(name, tree string, signers ...string) Earlier {
		return Earlier{Commit: strings.Repeat(name, 40), Tree: tree,
			Requirements: []ledger.RequirementStatus{{SignersCounted: signers}}}
	}

	for name, test := range map[string]struct {
		requirement string
		own         []Evidence
		tree        string
		earlier     []Earlier
		want        string
	}{
		"rebased":              {review, nil, "2", []Earlier{of("a", "1", bob)}, another},
		"the newest":           {review, nil, "2", []Earlier{of("a", "1", bob), of("b", "1", bob)}, another},
		"an older one":         {review, nil, "2", []Earlier{of("b", "1"), of("a", "1", bob)}, another},
		"nobody":               {review, nil, "2", []Earlier{of("a", "1")}, ""},
		"the same tree":        {review, nil, "1", []Earlier{of("a", "1", bob)}, ""},
		"an unknown tree":      {review, nil, "", []Earlier{of("a", "1", bob)}, tree + "but not both trees are known"},
		"another's is unknown": {review, nil, "1", []Earlier{of("a", "", bob)}, tree + "but not both trees are known"},
		"the same tree, without carry": {`{"state":"PROMOTABLE","predicate":"review:*"}`, nil, "1",
			[]Earlier{of("a", "1", bob)}, tree + "but the requirement does not carry"},
		"another tree, without carry": {`{"state":"PROMOTABLE","predicate":"review:*"}`, nil, "2",
			[]Earlier{of("a", "1", bob)}, another},
		"not for reviews": {`{"state":"PROMOTABLE","predicate":"test:*"}`, nil, "2", []Earlier{of("a", "1", bob)}, ""},
		"not by the author": {`{"state":"PROMOTABLE","predicate":"approval:*","exclude_author":true}`, nil, "2",
			[]Earlier{of("a", "1", bob)}, strings.Replace(another, "reviewed", "signed", 1)},
		"not by the author, for reviews": {`{"state":"PROMOTABLE","predicate":"review:*","exclude_author":true}`, nil, "2",
			[]Earlier{of("a", "1", bob)}, another},
		"a deployment": {`{"state":"DEPLOYED","predicate":"deploy:*","exclude_author":true}`, nil, "2",
			[]Earlier{of("a", "1", bob)}, ""},
		"elsewhere": {`{"state":"PROMOTABLE","predicate":"review:*","branches":["release/*"]}`, nil, "2",
			[]Earlier{of("a", "1", bob)}, ""},
		"met": {review, []Evidence{signed(ci, "review:code", ledger.Pass)}, "2", []Earlier{of("a", "1", bob)}, ""},
		"one of two, by another": {`{"state":"PROMOTABLE","predicate":"review:*","threshold":2}`,
			[]Evidence{signed(ci, "review:code", ledger.Pass)}, "2", []Earlier{of("a", "1", ci, bob)}, another},
		"one of two, by the same": {`{"state":"PROMOTABLE","predicate":"review:*","threshold":2}`,
			[]Evidence{signed(bob, "review:code", ledger.Pass)}, "2", []Earlier{of("a", "1", bob)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, test.requirement)
			f := attested(test.own...)
			f.Branch, f.Targets = "topic", []string{"main"}
			statuses := c.Derive(f, policyNow).Requirements
			before := statuses[0].Reason
			if c.MissesReview(statuses) {
				c.NoteEarlier(statuses, test.tree, slices.Values(test.earlier))
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
	c := mustParse(t, `{"state":"PROMOTABLE","predicate":"review:*"}`,
		`{"state":"PROMOTABLE","predicate":"review:security"}`)
	f := attested()
	f.Branch, f.Targets = "topic", []string{"main"}
	list := []Earlier{
		{Requirements: []ledger.RequirementStatus{{}, {}}},
		{Requirements: []ledger.RequirementStatus{{SignersCounted: []string{bob}}, {}}},
		{Requirements: []ledger.RequirementStatus{{SignersCounted: []string{bob}}, {SignersCounted: []string{bob}}}},
		{},
	}
	for i := range list {
		list[i].Tree = "1"
	}

	taken := 0
	count := func(yield func(Earlier) bool) {
		slices.Values(list)(func(e Earlier) bool { taken++; return yield(e) })
	}
	statuses := c.Derive(f, policyNow).Requirements
	c.NoteEarlier(statuses, "2", count)
	if taken != 3 {
		t.Errorf("%d commits were taken, want 3", taken)
	}
	for _, s := range statuses {
		if strings.Count(s.Reason, "an earlier commit") != 1 {
			t.Errorf("reason %q", s.Reason)
		}
	}
}
