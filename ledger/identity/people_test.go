package identity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
	"pgregory.net/rapid"
)

// A signer is an argument of People.Add.
type signer struct {
	dn  identity.DN
	key [32]byte
}

func keyNo(n int) (key [32]byte) {
	copy(key[:], fmt.Sprint(n))
	return key
}

func signerOf(dn string, key int) signer {
	return signer{ledgertest.Must(identity.ParseDN(dn)), keyNo(key)}
}

func TestPeople(t *testing.T) {
	ann := signerOf("cn=ann,ou=web,o=acme", 1)
	for _, test := range []struct {
		name   string
		added  []signer
		one    signer // compared with ann
		isSame bool
	}{
		{"the same", nil, ann, true},
		{"another key", nil, signerOf("cn=ann,ou=web,o=acme", 2), true},
		{"another name", nil, signerOf("cn=ben,ou=web,o=acme", 1), true},
		{"case and blanks", nil, signerOf("cn=Ann ,ou=WEB,o=acme", 2), true},
		{"full width", nil, signerOf("cn=Ａｎｎ,ou=web,o=acme", 2), true},
		{"two others", nil, signerOf("cn=ben,ou=web,o=acme", 2), false},
		{"another unit", nil, signerOf("cn=ann,ou=ops,o=acme", 2), false},
		{"no unit", nil, signerOf("cn=ann,o=acme", 2), false},
		{"the CN alone", nil, signerOf("cn=ann", 2), false},
		{"connected by a key and a name", []signer{signerOf("cn=ben,ou=web,o=acme", 1)},
			signerOf("cn=BEN,ou=web,o=acme", 2), true},
		{"connected by two others", []signer{
			signerOf("cn=eve,o=acme", 4), signerOf("cn=ann,ou=web,o=acme", 3), signerOf("cn=eve,o=acme", 3),
		}, signerOf("cn=ben,o=acme", 4), true},
	} {
		var people identity.People
		for _, s := range append(slices.Clone(test.added), ann, test.one) {
			people.Add(s.dn, s.key)
		}
		a, okA := people.Of(ann.dn, ann.key)
		b, okB := people.Of(test.one.dn, test.one.key)
		if !okA || !okB || (a == b) != test.isSame {
			t.Errorf("%s: persons %d, %v and %d, %v; want one person: %v", test.name, a, okA, b, okB, test.isSame)
		}
	}
}

// A signer that was not added has no person, unless his name and key are known to be
// one.
func TestPeopleUnknown(t *testing.T) {
	var people identity.People
	ann, ben := signerOf("cn=ann,o=acme", 1), signerOf("cn=ben,o=acme", 2)
	if person, ok := people.Of(ann.dn, ann.key); ok {
		t.Errorf("nobody was added, and ann is person %d", person)
	}

	people.Add(ann.dn, ann.key)
	people.Add(ben.dn, ben.key)
	for _, unknown := range []signer{{ann.dn, keyNo(3)}, {ann.dn, ben.key}, signerOf("cn=eve", 1), signerOf("cn=eve", 3)} {
		if person, ok := people.Of(unknown.dn, unknown.key); ok {
			t.Errorf("%s with key %.1s is person %d", unknown.dn, unknown.key, person)
		}
	}

	people.Add(ann.dn, ben.key)
	want, _ := people.Of(ann.dn, ann.key)
	for _, known := range []signer{{ben.dn, ann.key}, {identity.DN{CN: "ANN", O: "Acme"}, ben.key}} {
		if person, ok := people.Of(known.dn, known.key); !ok || person != want {
			t.Errorf("%s with key %.1s is person %d, %v; want %d", known.dn, known.key, person, ok, want)
		}
	}
}

// wantPersons fails the test unless People agrees with the transitive closure.
func wantPersons(t interface{ Fatalf(string, ...any) }, added []signer) {
	var people identity.People
	for _, s := range added {
		people.Add(s.dn, s.key)
	}
	isSame := closure(added)
	for i, a := range added {
		first, ok := people.Of(a.dn, a.key)
		if !ok {
			t.Fatalf("%s with key %x was added, but is not found", a.dn, a.key[:4])
		}
		for j, b := range added {
			if second, _ := people.Of(b.dn, b.key); (first == second) != isSame[i][j] {
				t.Fatalf("%s with key %x is person %d, %s with key %x is %d; want one person: %v",
					a.dn, a.key[:4], first, b.dn, b.key[:4], second, isSame[i][j])
			}
		}
	}
}

// closure returns which signers are one person, computed step by step (Warshall).
func closure(signers []signer) [][]bool {
	isSame := make([][]bool, len(signers))
	for i, a := range signers {
		isSame[i] = make([]bool, len(signers))
		for j, b := range signers {
			isSame[i][j] = a.key == b.key || a.dn.Fold() == b.dn.Fold()
		}
	}
	for via := range signers {
		for i := range signers {
			for j := range signers {
				isSame[i][j] = isSame[i][j] || isSame[i][via] && isSame[via][j]
			}
		}
	}
	return isSame
}

func TestPeopleIsTransitiveClosure(t *testing.T) {
	name := rapid.SampledFrom([]string{"ann", "Ann", " ann", "ａnn", "ben", "BEN", "eve", "STRASSE",
		"straße", "ﬁn", "fin"})
	drawSigner := rapid.Custom(func(t *rapid.T) signer {
		unit := rapid.SampledFrom([]string{"", "web", "Web"}).Draw(t, "ou")
		return signer{identity.DN{CN: name.Draw(t, "cn"), OU: unit}, keyNo(rapid.IntRange(0, 20).Draw(t, "key"))}
	})
	testenv.Check(t, func(t *rapid.T) {
		wantPersons(t, rapid.SliceOfN(drawSigner, 0, 30).Draw(t, "signers"))
	})
}

func FuzzPeople(f *testing.F) {
	f.Add("ann 1;Ann 2;ben 2;eve 3")
	f.Add("a 1;b 2;c 3;b 1;a 3")
	f.Add("\u200b 1;\u00a0 2;  2;ß 3;SS 1")
	f.Fuzz(func(t *testing.T, text string) {
		var signers []signer
		for entry := range strings.SplitSeq(text[:min(len(text), 300)], ";") {
			name, key, _ := strings.Cut(entry, " ")
			s := signer{dn: identity.DN{CN: name}}
			copy(s.key[:], key)
			signers = append(signers, s)
		}
		wantPersons(t, signers)
	})
}

// However signers are connected, few steps lead from one to the person.
func TestPeopleTreesAreLow(t *testing.T) {
	const many = 1 << 14
	name := func(i int) identity.DN { return identity.DN{CN: fmt.Sprint("signer ", i)} }
	for order, next := range map[string]func(i int) int{
		"forwards":  func(i int) int { return i },
		"backwards": func(i int) int { return many - 1 - i },
		"mixed":     func(i int) int { return i * 7919 % many },
	} {
		var people identity.People
		for i := range many {
			people.Add(name(i), keyNo(i))
		}
		for i := range many {
			people.Add(name(next(i)), keyNo((next(i)+1)%many))
		}

		want, _ := people.Of(name(0), keyNo(0))
		for i := range many {
			if person, ok := people.Of(name(i), keyNo(i)); !ok || person != want {
				t.Fatalf("%s: signer %d is person %d, %v; want %d", order, i, person, ok, want)
			}
			if steps := people.Height(name(i)); steps > 15 { // log2 of the 2^15 nodes
				t.Fatalf("%s: %d steps from signer %d to the person, want at most 15", order, steps, i)
			}
		}
	}
}
