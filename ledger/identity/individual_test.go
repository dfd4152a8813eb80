package identity_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

func TestIndividuals(t *testing.T) {
	distinct := func(s identity.NamedSigner) identity.NamedSigner { s.Distinct = true; return s }
	by := func(person int64, names ...string) identity.NamedSigner {
		return identity.NamedSigner{Person: person, Names: names}
	}
	type signers = []identity.NamedSigner
	for name, test := range map[string]struct {
		signers signers
		want    map[int64]int64
	}{
		"nobody":                 {nil, map[int64]int64{}},
		"other names":            {signers{by(1, "ann"), by(2, "bob")}, map[int64]int64{1: 1, 2: 2}},
		"no names":               {signers{by(1), by(2)}, map[int64]int64{1: 1, 2: 2}},
		"a common name":          {signers{by(2, "rita"), by(1, "rita")}, map[int64]int64{1: 1, 2: 1}},
		"the address of another": {signers{by(1, "rita", "r@x"), by(2, "ann", "r@x")}, map[int64]int64{1: 1, 2: 1}},
		"connected by a third": {signers{by(1, "a"), by(2, "b"), by(3, "b", "a")},
			map[int64]int64{1: 1, 2: 1, 3: 1}},
		"connected by a person's signer": {signers{by(1, "a"), by(2, "b"), by(2, "a")}, map[int64]int64{1: 1, 2: 1}},
		"distinct": {signers{by(1, "rita"), distinct(by(2, "rita")), by(3, "rita")},
			map[int64]int64{1: 1, 2: 2, 3: 1}},
		"distinct by another signer": {signers{by(1, "rita"), by(2, "rita"), distinct(by(2, "r"))},
			map[int64]int64{1: 1, 2: 2}},
		"who is distinct connects nobody": {signers{by(1, "a"), distinct(by(2, "a", "b")), by(3, "b")},
			map[int64]int64{1: 1, 2: 2, 3: 3}},
	} {
		if got := identity.Individuals(test.signers); !maps.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestIndividualsAreConnected compares with following common names from person to person.
func TestIndividualsAreConnected(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) identity.NamedSigner {
			return identity.NamedSigner{
				Person:   rapid.Int64Range(1, 8).Draw(t, "person"),
				Names:    rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 2).Draw(t, "names"),
				Distinct: rapid.IntRange(0, 5).Draw(t, "distinct") == 0,
			}
		}), 0, 12).Draw(t, "signers")
		got := identity.Individuals(list)
		for _, s := range list {
			reached := connected(list, s.Person)
			if got[s.Person] != slices.Min(reached) {
				t.Fatalf("%d is %d, and connected to %v: %v", s.Person, got[s.Person], reached, list)
			}
		}
	})
}

// connected returns the people whom common names connect to a person, and the person.
func connected(list []identity.NamedSigner, person int64) []int64 {
	isDistinct := func(person int64) bool {
		return slices.ContainsFunc(list, func(s identity.NamedSigner) bool { return s.Person == person && s.Distinct })
	}
	reached := []int64{person}
	for n := 0; n < len(reached) && !isDistinct(person); n++ {
		for _, s := range list {
			for _, other := range list {
				isCommon := slices.ContainsFunc(s.Names, func(name string) bool { return slices.Contains(other.Names, name) })
				if s.Person == reached[n] && isCommon && !isDistinct(other.Person) && !slices.Contains(reached, other.Person) {
					reached = append(reached, other.Person)
				}
			}
		}
	}
	return reached
}
