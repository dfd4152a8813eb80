package room

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

const ci, ci2, ops = "cn=ci,ou=build,o=acme", "cn=ci2,ou=build,o=acme", "cn=ops,o=acme"

func TestRoomForEvidence(t *testing.T) {
	of := func(dn string, person int64, predicate, slot string) policy.Evidence {
		return policy.Evidence{Predicate: predicate, Signer: must.Get(identity.ParseDN(dn))(t), Status: ledger.Pass,
			Person: person, Slot: slot}
	}
	list := func(n int, item func(i int) policy.Evidence) []policy.Evidence {
		var all []policy.Evidence
		for i := range n {
			e := item(i)
			e.Attestation = fmt.Sprintf("att_%05d", i)
			all = append(all, e)
		}
		return all
	}
	slots := func(n int) []policy.Evidence {
		return list(n, func(i int) policy.Evidence { return of(ci, 1, "test:go", fmt.Sprint("sha256:", i)) })
	}
	signers := func(n int) []policy.Evidence {
		return list(n, func(i int) policy.Evidence { return of(fmt.Sprint("cn=signer-", i), int64(i+1), "test:go", "") })
	}
	// Each of n topics under two names.
	named := func(n int) []policy.Evidence {
		return list(2*n, func(i int) policy.Evidence {
			return of([]string{ci, ci2}[i/n], 1, "test:go", fmt.Sprint("sha256:", i%n))
		})
	}

	for _, test := range []struct {
		name   string
		list   []policy.Evidence
		e      policy.Evidence
		people []int64
		want   bool
	}{
		{"the last topic", slots(policy.MaxTopics - 1), of(ci, 0, "test:go", ""), []int64{1}, true},
		{"one more", slots(policy.MaxTopics), of(ci, 0, "test:go", ""), []int64{1}, false},
		{"another predicate", slots(policy.MaxTopics), of(ci, 0, "test:js", "sha256:0"), []int64{1}, false},
		{"another person", slots(policy.MaxTopics), of(ops, 0, "test:go", "sha256:0"), []int64{2}, false},
		{"a person without evidence", slots(policy.MaxTopics), of(ops, 0, "test:go", "sha256:0"), nil, false},
		{"a known topic", slots(policy.MaxTopics), of(ci, 0, "test:go", "sha256:399"), []int64{1}, true},
		{"another name", slots(policy.MaxTopics), of(ci2, 0, "test:go", "sha256:399"), []int64{1}, true},
		{"two people become one", slots(policy.MaxTopics), of(ci2, 0, "test:go", "sha256:399"), []int64{2, 1}, true},
		{"the last signer", signers(policy.MaxSigners - 1), of("cn=new", 0, "test:go", ""), nil, true},
		{"one more signer", signers(policy.MaxSigners), of("cn=new", 0, "test:go", ""), nil, false},
		{"another topic of a signer", signers(policy.MaxSigners), of("cn=signer-1", 0, "test:js", ""), nil, true},
		{"an older commit", slots(5000), of(ci, 0, "test:go", "sha256:4999"), []int64{1}, true},
		{"one more on an older commit", slots(5000), of(ci, 0, "test:go", "sha256:5000"), []int64{1}, false},
		{"names are not topics", named(policy.MaxTopics - 1), of(ci, 0, "test:go", "sha256:new"), []int64{1}, true},
		{"the last name", named(policy.MaxTopics)[1:], of(ci, 0, "test:go", "sha256:0"), []int64{1}, true},
		{"one more name", named(policy.MaxTopics), of(ops, 0, "test:go", "sha256:0"), []int64{1}, false},
		{"a known name", named(policy.MaxTopics), of(ci2, 0, "test:go", "sha256:0"), []int64{1}, true},
	} {
		err := Check(test.list, &test.e, test.people)
		e, ok := errors.AsType[*ledger.Error](err)
		if (err == nil) != test.want || ok && e.Code != ledger.CodeTooMuchEvidence {
			t.Errorf("%s: %v, want room: %t", test.name, err, test.want)
		}
	}
}
