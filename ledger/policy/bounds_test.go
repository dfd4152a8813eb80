package policy

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// largeContract returns the document of a contract with so many patterns, at most 21 in each
// requirement.
func largeContract(requirements, patterns int) []byte {
	var list []string
	for i := range requirements {
		var signers []string
		for len(signers) < 21 && patterns > 0 {
			signers = append(signers, fmt.Sprintf(`"cn=*-%d-%d,o=acme"`, i, patterns))
			patterns--
		}
		list = append(list,
			fmt.Sprintf(`{"state":"ATTESTED","predicate":"test:*","signers":[%s]}`, strings.Join(signers, ",")))
	}
	return []byte(`{"requirements":[` + strings.Join(list, ",") + `]}`)
}

func TestContractBounds(t *testing.T) {
	for _, test := range []struct {
		requirements, patterns int
		fault                  string
	}{
		{200, 4096, ""},
		{200, 4097, "too many patterns: at most 4096"},
		{201, 0, "requirements: too many: 201 entries, at most 200"},
	} {
		_, err := Parse(largeContract(test.requirements, test.patterns))
		if (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%d requirements, %d patterns: %v, want %q", test.requirements, test.patterns, err, test.fault)
		}
	}

	// An earlier release has accepted it.
	c, err := ParseStored(largeContract(200, 4200))
	if err != nil || len(c.index.Patterns) != 4200 {
		t.Fatalf("a stored contract: %v", err)
	}
	d := c.Derive(attested(signed("cn=x-0-4200,o=acme", "test:go", ledger.Pass)), policyNow)
	if !d.Requirements[0].Met || d.Requirements[1].Met {
		t.Errorf("a stored contract is not evaluated: %+v", d.Requirements[:2])
	}
}

// The limit of comparisons counts names, each with each distinct pattern, in the order of
// requirements. The order of evidence does not matter, and neither do names without
// evidence that counts.
func TestComparisonsAreLimited(t *testing.T) {
	c, err := Parse(largeContract(200, 4000))
	if err != nil {
		t.Fatal(err)
	}
	list := func(names int) (f Facts) {
		f = attested()
		for i := range names {
			e := signed(fmt.Sprintf("cn=%d-190-10,o=acme", i), "test:go", ledger.Pass)
			e.Attestation, e.Person, e.Slot = fmt.Sprintf("att_%04d", i), 7, fmt.Sprint(i)
			f.Evidence = append(f.Evidence, e)
		}
		return f
	}

	within := c.Derive(list(500), policyNow)
	if r := within.Requirements[190]; !r.Met || strings.Contains(r.Reason, "too long") {
		t.Errorf("2,000,000 comparisons: %+v", r)
	}

	f := list(501)
	beyond := c.Derive(f, policyNow)
	for i, r := range beyond.Requirements {
		tooMany := strings.Contains(r.Reason, "; comparing 501 signers with the patterns of the contract takes too long")
		if r.Met != (i > 190) || tooMany != (i == 190) { // the last ones have no patterns
			t.Errorf("requirement %d: %+v", i, r)
		}
	}
	for range 5 {
		rand.Shuffle(len(f.Evidence), func(i, j int) { f.Evidence[i], f.Evidence[j] = f.Evidence[j], f.Evidence[i] })
		if again := c.Derive(f, policyNow); !reflect.DeepEqual(again, beyond) {
			t.Fatal("the order of evidence matters")
		}
	}
}

// What a commit of an earlier release has too much of is not weighed, and said.
func TestVerdictsAreLimited(t *testing.T) {
	c, err := Parse(largeContract(200, 0))
	if err != nil {
		t.Fatal(err)
	}
	f := attested()
	for i := range 5001 {
		e := signed(ci, "test:go", ledger.Pass)
		e.Attestation, e.Slot = fmt.Sprintf("att_%04d", i), fmt.Sprint(i)
		f.Evidence = append(f.Evidence, e)
	}
	d := c.Derive(f, policyNow)
	if r := d.Requirements[198]; !r.Met {
		t.Errorf("within the limit: %+v", r)
	}
	if r := d.Requirements[199]; r.Met || !strings.Contains(r.Reason, "weighing 5001 attestations") {
		t.Errorf("beyond the limit: %+v", r)
	}
}

// Sorted evidence and an index find the same as looking at everything.
func TestSortedEvidence(t *testing.T) {
	predicates := rapid.StringMatching(`[ab]{0,2}(://)?[ab]{0,2}\*?`)
	testenv.Check(t, func(t *rapid.T) {
		var list []Evidence
		for range rapid.IntRange(0, 20).Draw(t, "evidence") {
			e := Evidence{Predicate: predicates.Draw(t, "predicate"), PredicateType: predicates.Draw(t, "type")}
			list = append(list, e)
		}
		s := &sortedEvidence{list: list}
		s.byPredicate, s.predicates = sortedBy(list, func(e *Evidence) string { return e.Predicate })

		for range 5 {
			r := Requirement{Predicate: predicates.Draw(t, "wanted predicate")}
			if rapid.Bool().Draw(t, "by type") {
				r = Requirement{Type: r.Predicate + "://x*"}
			}
			var want []int
			for i := range list {
				if r.isAbout(&list[i]) {
					want = append(want, i)
				}
			}
			got := slices.Sorted(slices.Values(s.about(&r)))
			if !slices.Equal(got, want) {
				t.Fatalf("%+v is about %v, want %v", r, got, want)
			}
		}
	})
}

func TestSignerIndex(t *testing.T) {
	patterns := rapid.SampledFrom([]string{"cn=a", "cn=b", "cn=*", "cn=*a", "o=x", "cn=a*,o=y", "ou=*"})
	testenv.Check(t, func(t *rapid.T) {
		draw := func() (list []identity.Pattern) {
			for range rapid.IntRange(0, 3).Draw(t, "patterns") {
				p, err := identity.ParsePattern(patterns.Draw(t, "pattern"))
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, p)
			}
			return list
		}
		c := Contract{Requirements: make([]Requirement, rapid.IntRange(1, 5).Draw(t, "requirements"))}
		for i := range c.Requirements {
			c.Requirements[i].Signers = draw()
		}
		c.Exceptions.Signers = draw()
		if c.index = newSignerIndex(c.Exceptions.Signers, c.Requirements); c.index == nil {
			return
		}

		f := Facts{Memo: new(testMemo)}
		for range 2 { // again, with the memo
			m := c.signerMatcher(&f)
			for _, d := range []identity.DN{{CN: "a"}, {CN: "b", O: "x"}, {CN: "ab", O: "y"}} {
				if got, want := m.mayExcept(d), matchesAny(c.Exceptions.Signers, d); got != want {
					t.Fatalf("%s may except: %t, want %t", d, got, want)
				}
				for i := range c.Requirements {
					if got, want := m.isAnySigner(i, d), c.Requirements[i].isSigner(d); got != want {
						t.Fatalf("%s may sign for %d: %t, want %t", d, i, got, want)
					}
				}
			}
		}
	})
}

// A testMemo remembers everything, and counts what it was asked to remember.
type testMemo struct {
	signers map[identity.DN]SignerMatch
	known   map[[sha256.Size]byte]Scopes
	sets    int
}

func (m *testMemo) Signer(d identity.DN) (SignerMatch, bool) { s, ok := m.signers[d]; return s, ok }

func (m *testMemo) SetSigner(d identity.DN, s SignerMatch) {
	if m.signers == nil {
		m.signers = make(map[identity.DN]SignerMatch)
	}
	m.sets++
	m.signers[d] = s
}

func (m *testMemo) Scopes(key [sha256.Size]byte) (Scopes, bool) { s, ok := m.known[key]; return s, ok }

func (m *testMemo) SetScopes(key [sha256.Size]byte, s Scopes) {
	if m.known == nil {
		m.known = make(map[[sha256.Size]byte]Scopes)
	}
	m.sets++
	m.known[key] = s
}

// Prepare finds out all that takes long, and nothing of it is found out again.
func TestPrepare(t *testing.T) {
	names, err := Parse(largeContract(200, 4096))
	if err != nil {
		t.Fatal(err)
	}
	paths := mustParse(t, `{"state":"ATTESTED","predicate":"test:*","paths":["**/x*/**/y*/**/*.go"]}`,
		`{"state":"PROMOTABLE","predicate":"test:*","branches":["release/*"]}`)

	for name, c := range map[string]Contract{"names": names, "paths": paths} {
		f := attested()
		for i := range 30 {
			dn := fmt.Sprintf("cn=a-%d-%d,o=acme", i, 4096-21*i)
			f.Evidence = append(f.Evidence, signed(dn, "test:go", ledger.Pass))
		}
		f.HasChanges = true
		for i := range 2000 {
			f.Changes = append(f.Changes, fmt.Sprintf("services/web/internal/handlers/%04d_handler.go", i))
		}
		memo := new(testMemo)
		want := c.Derive(f, policyNow)

		f.Memo = memo
		if !c.NeedsMemo() || c.IsPrepared(&f) || memo.sets > 0 {
			t.Errorf("%s: prepared before", name)
		}
		c.Prepare(&f)
		sets := memo.sets
		if !c.IsPrepared(&f) || sets == 0 {
			t.Errorf("%s: not prepared after", name)
		}
		if got := c.Derive(f, policyNow); !reflect.DeepEqual(got, want) || memo.sets != sets {
			t.Errorf("%s: %d more was found out; got %+v, want %+v", name, memo.sets-sets, got, want)
		}

		f.Changes = f.Changes[1:]
		if c.IsPrepared(&f) != (name == "names") {
			t.Errorf("%s: prepared for other changes: %t", name, name != "names")
		}
		f.Targets = []string{"release/1"}
		c.Prepare(&f)
		if d := c.Derive(f, policyNow); name == "paths" && !d.Requirements[1].Applies {
			t.Errorf("the scopes of other targets were used")
		}
	}
}
