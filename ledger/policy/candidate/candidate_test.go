package candidate

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

func TestWhoseApprovalWouldCount(t *testing.T) {
	contract := policy.Contract{Rules: policy.Rules, Targets: policy.AllTargets, Requirements: []policy.Requirement{
		{State: ledger.Attested, Predicate: "test:*", Threshold: 1, Accept: []ledger.Status{ledger.Pass}},
		{State: ledger.Promotable, Predicate: "review:*", Threshold: 2, Accept: []ledger.Status{ledger.Pass},
			ExcludeAuthor: policy.AuthorExcluded, DistinctFrom: []ledger.State{ledger.Attested}},
	}}
	known := policy.Facts{Authors: []ledger.Author{{Name: "Ada", Email: "ada@example.org"}}}
	status := func(tested, approved []string) []ledger.RequirementStatus {
		return []ledger.RequirementStatus{{State: ledger.Attested, Applies: true, Met: true, Need: 1, SignersCounted: tested},
			{State: ledger.Promotable, Applies: true, Need: 2, SignersCounted: approved}}
	}
	evidence := func(dn string) policy.Evidence {
		parsed, _ := identity.ParseDN(dn)
		return policy.Evidence{Signer: parsed}
	}

	for name, test := range map[string]struct {
		tested, approved []string
		signer           string
		authors          policy.Facts
		want             bool
	}{
		"the first reviewer":             {[]string{"cn=ci"}, nil, "cn=rita", known, true},
		"the second":                     {[]string{"cn=ci"}, []string{"cn=rita"}, "cn=sam", known, true},
		"somebody who has approved":      {[]string{"cn=ci"}, []string{"cn=rita"}, "cn=rita", known, false},
		"the author":                     {[]string{"cn=ci"}, nil, "cn=Ada", known, false},
		"who has tested alone":           {[]string{"cn=ci"}, nil, "cn=ci", known, false},
		"who has tested with others":     {[]string{"cn=ci", "cn=bot"}, nil, "cn=ci", known, true},
		"a tester's approval is no help": {[]string{"cn=ci"}, []string{"cn=ci"}, "cn=rita", known, true},
		"of an unknown author":           {[]string{"cn=ci"}, nil, "cn=rita", policy.Facts{}, false},
	} {
		got := WouldCount(&contract, test.authors, status(test.tested, test.approved), 1, test.signer, evidence)
		if got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
