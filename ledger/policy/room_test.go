package policy

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestCheckRoom(t *testing.T) {
	of := func(dn string, person int64, predicate, slot string) Evidence {
		e := signed(dn, predicate, ledger.Pass)
		e.Person, e.Slot = person, slot
		return e
	}
	list := func(n int, item func(i int) Evidence) []Evidence {
		var all []Evidence
		for i := range n {
			e := item(i)
			e.Attestation = fmt.Sprintf("att_%05d", i)
			all = append(all, e)
		}
		return all
	}
	slots := func(n int) []Evidence {
		return list(n, func(i int) Evidence { return of(ci, 1, "test:go", fmt.Sprint("sha256:", i)) })
	}
	signers := func(n int) []Evidence {
		return list(n, func(i int) Evidence { return of(fmt.Sprint("cn=signer-", i), int64(i+1), "test:go", "") })
	}
	// Each of n topics under two names.
	named := func(n int) []Evidence {
		return list(2*n, func(i int) Evidence { return of([]string{ci, ci2}[i/n], 1, "test:go", fmt.Sprint("sha256:", i%n)) })
	}

	for _, test := range []struct {
		name   string
		list   []Evidence
		e      Evidence
		people []int64
		want   bool
	}{
		{"the last topic", slots(MaxTopics - 1), of(ci, 0, "test:go", ""), []int64{1}, true},
		{"one more", slots(MaxTopics), of(ci, 0, "test:go", ""), []int64{1}, false},
		{"another predicate", slots(MaxTopics), of(ci, 0, "test:js", "sha256:0"), []int64{1}, false},
		{"another person", slots(MaxTopics), of(ops, 0, "test:go", "sha256:0"), []int64{2}, false},
		{"a person without evidence", slots(MaxTopics), of(ops, 0, "test:go", "sha256:0"), nil, false},
		{"a known topic", slots(MaxTopics), of(ci, 0, "test:go", "sha256:399"), []int64{1}, true},
		{"another name", slots(MaxTopics), of(ci2, 0, "test:go", "sha256:399"), []int64{1}, true},
		{"two people become one", slots(MaxTopics), of(ci2, 0, "test:go", "sha256:399"), []int64{2, 1}, true},
		{"the last signer", signers(MaxSigners - 1), of("cn=new", 0, "test:go", ""), nil, true},
		{"one more signer", signers(MaxSigners), of("cn=new", 0, "test:go", ""), nil, false},
		{"another topic of a signer", signers(MaxSigners), of("cn=signer-1", 0, "test:js", ""), nil, true},
		{"an older commit", slots(5000), of(ci, 0, "test:go", "sha256:4999"), []int64{1}, true},
		{"one more on an older commit", slots(5000), of(ci, 0, "test:go", "sha256:5000"), []int64{1}, false},
		{"names are not topics", named(MaxTopics - 1), of(ci, 0, "test:go", "sha256:new"), []int64{1}, true},
		{"the last name", named(MaxTopics)[1:], of(ci, 0, "test:go", "sha256:0"), []int64{1}, true},
		{"one more name", named(MaxTopics), of(ops, 0, "test:go", "sha256:0"), []int64{1}, false},
		{"a known name", named(MaxTopics), of(ci2, 0, "test:go", "sha256:0"), []int64{1}, true},
	} {
		err := CheckRoom(test.list, &test.e, test.people)
		e, ok := errors.AsType[*ledger.Error](err)
		if (err == nil) != test.want || ok && e.Code != ledger.CodeTooMuchEvidence {
			t.Errorf("%s: %v, want room: %t", test.name, err, test.want)
		}
	}
}
