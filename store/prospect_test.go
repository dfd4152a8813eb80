package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/radarindex"
)

// openWithTips opens a store whose repo acme/api has tips of the branches one,
// two and three, which all change the file f and overlap.
func openWithTips(t *testing.T, o Options) (*Store, func(sha, branch string)) {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), o)
	check(t, err)
	t.Cleanup(func() { s.Close() })
	_, err = s.CreateOrg(t.Context(), "acme")
	check(t, err)
	_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	check(t, err)
	push := func(sha, branch string) {
		t.Helper()
		_, _, err := s.Register(t.Context(), "acme", "api", sha, changesF(branch))
		check(t, err)
	}
	for i, branch := range []string{"one", "two", "three"} {
		push(numbered(i), branch)
	}
	return s, push
}

func numbered(i int) string { return fmt.Sprintf("%040x", i+1) }

func changesF(branch string) ledger.Registration {
	return ledger.Registration{Branch: branch, Changes: []radar.Change{{Path: "f", Status: "M"}}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsFoundAheadIsLookedAtAgain changes the tips while a registration is
// on its way: after it has read what is known of the commit, and after it has
// looked for what overlaps with it.
func TestWhatIsFoundAheadIsLookedAtAgain(t *testing.T) {
	all := []string{"three", "two", "one"}
	for name, test := range map[string]struct {
		between func(t *testing.T, s *Store, push func(sha, branch string))
		want    []string
	}{
		"nothing happens": {func(*testing.T, *Store, func(string, string)) {}, all},
		"one is withdrawn": {func(t *testing.T, s *Store, _ func(string, string)) {
			check(t, s.Withdraw(t.Context(), "acme", "api", numbered(1)))
		}, []string{"three", "one"}},
		"one is withdrawn, pushed again": {func(t *testing.T, s *Store, push func(string, string)) {
			check(t, s.Withdraw(t.Context(), "acme", "api", numbered(1)))
			push(numbered(1), "two")
		}, []string{"two", "three", "one"}},
		"one is superseded": {func(_ *testing.T, _ *Store, push func(string, string)) {
			push(numbered(5), "two")
		}, []string{"two", "three", "one"}},
		"one has landed": {func(t *testing.T, s *Store, push func(string, string)) {
			n := ledger.Registration{Branch: "other", Contained: []string{numbered(0)}}
			_, _, err := s.Register(t.Context(), "acme", "api", numbered(5), n)
			check(t, err)
		}, []string{"three", "two"}},
		"it is pushed with another record": {func(t *testing.T, s *Store, push func(string, string)) {
			n := ledger.Registration{Branch: "new", Changes: []radar.Change{{Path: "g", Status: "M"}}}
			_, _, err := s.Register(t.Context(), "acme", "api", numbered(9), n)
			check(t, err)
		}, all},
		"the contract ignores the file": {func(t *testing.T, s *Store, _ func(string, string)) {
			p, err := s.Policy(t.Context(), "acme", "api", 0)
			check(t, err)
			p.Radar.Ignore = []string{"f"}
			_, err = s.SetPolicy(t.Context(), "acme", "api", p.Contract, p.Version, "host")
			check(t, err)
		}, nil},
	} {
		for _, beforeLook := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, before the look: %t", name, beforeLook), func(t *testing.T) {
				s, push := openWithTips(t, Options{})
				foreseen(t, s, "api") // there is an index
				n := changesF("new")
				p, err := s.prospect(t.Context(), "acme", "api", numbered(9), n)
				check(t, err)
				if beforeLook {
					test.between(t, s, push)
				}
				ahead, err := s.scanProspect(t.Context(), p)
				check(t, err)
				if !beforeLook {
					test.between(t, s, push)
				}
				if found := s.register(t, numbered(9), n, ahead); !slices.Equal(found, test.want) {
					t.Errorf("found %q, want %q", found, test.want)
				}
			})
		}
	}
}

// register is the write of Register. It returns the branches of what was found.
func (s *Store) register(t *testing.T, sha string, n ledger.Registration, ahead *prospectScan) (found []string) {
	t.Helper()
	done, err := write(t.Context(), s, func(t *tx) (registered, error) { return t.register("acme", "api", sha, n, ahead) })
	check(t, err)
	for _, f := range done.radar.overlaps {
		found = append(found, f.Branch)
	}
	return found
}

// A registration that says nothing of what the commit changes is about what
// another one says meanwhile.
func TestARegistrationCountsWhatAnotherSaysMeanwhile(t *testing.T) {
	s, push := openWithTips(t, Options{})
	g := ledger.Registration{Branch: "new", Changes: []radar.Change{{Path: "g", Status: "M"}}}
	_, _, err := s.Register(t.Context(), "acme", "api", numbered(9), g)
	check(t, err)
	n := ledger.Registration{Branch: "new"}
	p, err := s.prospect(t.Context(), "acme", "api", numbered(9), n)
	check(t, err)
	push(numbered(9), "new")
	ahead, err := s.scanProspect(t.Context(), p)
	check(t, err)
	if found := s.register(t, numbered(9), n, ahead); len(found) != 3 {
		t.Errorf("found %q", found)
	}
}

// What a write that fails knew of tips is not remembered: their numbers are
// given again.
func TestAWriteThatFailsIsNotRemembered(t *testing.T) {
	s, _ := openWithTips(t, Options{})
	failed := errors.New("failed")
	err := s.write(t.Context(), func(t *tx) error {
		t.batch.recent.Add(radarindex.Tip{CommitID: 9, Seq: 4}, radar.New(nil).Footprint(nil))
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	check(t, s.write(t.Context(), func(t *tx) error {
		if t.batch.recent.Footprint(&radarindex.Tip{CommitID: 9, Seq: 4}, 0) != nil {
			return errors.New("it is")
		}
		return nil
	}))
}

func TestForeseeWaitsForItsTurn(t *testing.T) {
	s, _ := openWithTips(t, Options{})
	for range maxForeseeing {
		s.foreseeing <- struct{}{}
	}
	hurried, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	query := ledger.RadarQuery{Registration: changesF("new")}
	if _, err := s.Foresee(hurried, "acme", "api", query); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside %d others it gives %v", maxForeseeing, err)
	}
	time.AfterFunc(10*time.Millisecond, func() { <-s.foreseeing })
	got, err := s.Foresee(t.Context(), "acme", "api", query)
	check(t, err)
	if len(got.Overlaps) != 3 {
		t.Errorf("when it has its turn, it finds %d", len(got.Overlaps))
	}
	<-s.foreseeing
	if len(s.foreseeing) != 0 {
		t.Error("a turn was not given back")
	}
}
