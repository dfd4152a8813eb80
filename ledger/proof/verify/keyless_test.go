package verify

import (
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Signatures are verified with the version of a trusted root that was in effect: with several if one was
// replaced in the same millisecond.
func TestTrustedRootsInEffect(t *testing.T) {
	keys := Listed(nil, nil, []identity.TrustedRoot{
		{Name: "a", Version: 1, CreatedAt: 10}, {Name: "a", Version: 2, CreatedAt: 20},
		{Name: "a", Version: 3, CreatedAt: 20}, {Name: "b", Version: 1, CreatedAt: 30},
	}...)
	for at, want := range map[ledger.Time][]string{
		9: nil, 10: {"a1"}, 19: {"a1"}, 20: {"a1", "a2", "a3"}, 21: {"a3"}, 30: {"a3", "b1"}, 31: {"a3", "b1"},
	} {
		var got []string
		for _, r := range keys.rootsAt(at) {
			got = append(got, r.Name+string(rune('0'+r.Version)))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("at %d: %v, want %v", at, got, want)
		}
	}
}
