package transfer

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/store"
)

func TestCompareRoots(t *testing.T) {
	acme, other := store.LogRoot{Org: "acme", Epoch: 1, Leaves: 7}, store.LogRoot{Org: "acme", Epoch: 1, Leaves: 7}
	other.Root[31] = 1
	shorter := acme
	shorter.Leaves = 6
	two := store.LogRoot{Org: "beta", Epoch: 2}

	for _, test := range []struct {
		name     string
		from, to []store.LogRoot
		want     string // "" for equal ones
	}{
		{"same", []store.LogRoot{acme, two}, []store.LogRoot{acme, two}, ""},
		{"other root", []store.LogRoot{acme}, []store.LogRoot{other}, "log of acme in epoch 1"},
		{"other size", []store.LogRoot{acme}, []store.LogRoot{shorter}, "log of acme in epoch 1"},
		{"missing log", []store.LogRoot{acme, two}, []store.LogRoot{acme}, "log of beta in epoch 2"},
		{"one more", []store.LogRoot{acme}, []store.LogRoot{acme, two}, "it has 2 transparency logs"},
	} {
		err := compareRoots(test.from, test.to)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want %q", test.name, err, test.want)
		}
	}
}
