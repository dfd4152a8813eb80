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
)

// openWithTips opens a store whose repo acme/api has tips of the branches one,
// two and three, which all change the file f and overlap.
func openWithTips(t *testing.T) (*Store, func(sha, branch string)) {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), Options{})
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
	return ledger.Registration{Branch: branch, Changes: []ledger.Change{{Path: "f", Status: "M"}}}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsFoundAheadIsLookedAtAgain changes the tips between the scan for a
// registration and its write.
func TestWhatIsFoundAheadIsLookedAtAgain(t *testing.T) {
	for name, test := range map[string]struct {
		between func(t *testing.T, s *Store, push func(sha, branch string))
		want    []string
	}{
		"nothing happens": {func(*testing.T, *Store, func(string, string)) {}, []string{"three", "two", "one"}},
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
		"the contract ignores the file": {func(t *testing.T, s *Store, _ func(string, string)) {
			p, err := s.Policy(t.Context(), "acme", "api", 0)
			check(t, err)
			p.Radar.Ignore = []string{"f"}
			_, err = s.SetPolicy(t.Context(), "acme", "api", p.Contract, p.Version, "host")
			check(t, err)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, push := openWithTips(t)
			n := changesF("new")
			ahead, err := s.lookAhead(t.Context(), "acme", "api", numbered(9), n)
			check(t, err)
			if len(ahead.found) != 3 {
				t.Fatalf("ahead it found %d", len(ahead.found))
			}
			test.between(t, s, push)

			var found []string
			check(t, s.write(t.Context(), func(t *tx) error {
				r, err := findRepo(t.conn, "acme", "api")
				if err != nil {
					return err
				}
				c, isNew, err := t.findOrAddCommit(r, numbered(9))
				if err != nil {
					return err
				}
				d, err := s.deriver(t.conn, r)
				if err != nil {
					return err
				}
				result, err := t.registerTip(d, c, isNew, n, ahead)
				for _, f := range result.found {
					found = append(found, f.Branch)
				}
				return err
			}))
			if !slices.Equal(found, test.want) {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

func TestForeseeWaitsForItsTurn(t *testing.T) {
	s, _ := openWithTips(t)
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
