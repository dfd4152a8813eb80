package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/record"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// openWithTips opens a store whose repo acme/api has tips of the branches one, two and
// three, which all change the file f and so overlap. push registers another tip.
func openWithTips(t *testing.T, o Options) (s *Store, push func(sha, branch string)) {
	t.Helper()
	s, err := Open(t.Context(), NewFile(t), o)
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	createAcme(t, s)
	push = func(sha, branch string) {
		t.Helper()
		_, _, err := s.Register(t.Context(), "acme", "api", sha, changesF(branch))
		must.OK(t, err)
	}
	for i, branch := range []string{"one", "two", "three"} {
		push(numbered(i), branch)
	}
	return s, push
}

// numbered returns the id of the i-th commit.
func numbered(i int) string { return fmt.Sprintf("%040x", i+1) }

// changesF returns a registration whose change record has only the file f.
func changesF(branch string) ledger.Registration {
	return ledger.Registration{Branch: branch, Changes: []radar.Change{{Path: "f", Status: "M"}}}
}

// TestScanBeforeWriteIsBroughtUpToDate changes the tips during a registration: before its
// scan, and between its scan and its write.
func TestScanBeforeWriteIsBroughtUpToDate(t *testing.T) {
	all := []string{"three", "two", "one"}
	for name, test := range map[string]struct {
		change func(t *testing.T, s *Store, push func(sha, branch string))
		want   []string
	}{
		"no change": {func(*testing.T, *Store, func(string, string)) {}, all},
		"withdrawn": {func(t *testing.T, s *Store, _ func(string, string)) {
			must.OK(t, s.Withdraw(t.Context(), "acme", "api", numbered(1)))
		}, []string{"three", "one"}},
		"withdrawn and pushed again": {func(t *testing.T, s *Store, push func(string, string)) {
			must.OK(t, s.Withdraw(t.Context(), "acme", "api", numbered(1)))
			push(numbered(1), "two")
		}, []string{"two", "three", "one"}},
		"superseded": {func(_ *testing.T, _ *Store, push func(string, string)) {
			push(numbered(5), "two")
		}, []string{"two", "three", "one"}},
		"landed": {func(t *testing.T, s *Store, push func(string, string)) {
			n := ledger.Registration{Branch: "other", Contained: []string{numbered(0)}}
			_, _, err := s.Register(t.Context(), "acme", "api", numbered(5), n)
			must.OK(t, err)
		}, []string{"three", "two"}},
		"same commit with another change record": {func(t *testing.T, s *Store, push func(string, string)) {
			n := ledger.Registration{Branch: "new", Changes: []radar.Change{{Path: "g", Status: "M"}}}
			_, _, err := s.Register(t.Context(), "acme", "api", numbered(9), n)
			must.OK(t, err)
		}, all},
		"file ignored by new contract": {func(t *testing.T, s *Store, _ func(string, string)) {
			p, err := s.Policy(t.Context(), "acme", "api", 0)
			must.OK(t, err)
			p.Radar.Ignore = []string{"f"}
			_, err = s.SetPolicy(t.Context(), "acme", "api", p.Contract, p.Version, "host")
			must.OK(t, err)
		}, nil},
	} {
		for _, beforeScan := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, before the scan: %t", name, beforeScan), func(t *testing.T) {
				s, push := openWithTips(t, Options{})
				preview(t, s, "api") // builds the index

				n := changesF("new")
				p, err := s.Prospect(t.Context(), "acme", "api", numbered(9), n)
				must.OK(t, err)
				if beforeScan {
					test.change(t, s, push)
				}
				ahead, err := s.ScanProspect(t.Context(), p)
				must.OK(t, err)
				if !beforeScan {
					test.change(t, s, push)
				}

				if got := s.register(t, numbered(9), n, ahead); !slices.Equal(got, test.want) {
					t.Errorf("overlaps with %q, want %q", got, test.want)
				}
			})
		}
	}
}

// register runs the write of Register. It returns the branches of the overlaps.
func (s *Store) register(t *testing.T, sha string, n ledger.Registration,
	ahead *overlaps.ProspectScan) (branches []string) {
	t.Helper()
	done, err := txn.Write(t.Context(), s.db, sqldb.Write{Org: ""}, func(t *txn.Tx) (record.Registered, error) {
		sub, err := overlaps.Submit(sha, n)
		if err != nil {
			return record.Registered{}, err
		}
		return s.Recorder.RegisterSubmission(t, "acme", "api", sha, sub, ahead)
	})
	must.OK(t, err)
	for _, f := range done.Radar.Overlaps {
		branches = append(branches, f.Branch)
	}
	return branches
}

// A registration without a change record uses the change record of a concurrent
// registration of the same commit.
func TestConcurrentRegistrationsOfACommit(t *testing.T) {
	s, push := openWithTips(t, Options{})
	g := ledger.Registration{Branch: "new", Changes: []radar.Change{{Path: "g", Status: "M"}}}
	_, _, err := s.Register(t.Context(), "acme", "api", numbered(9), g)
	must.OK(t, err)

	n := ledger.Registration{Branch: "new"}
	p, err := s.Prospect(t.Context(), "acme", "api", numbered(9), n)
	must.OK(t, err)
	push(numbered(9), "new")
	ahead, err := s.ScanProspect(t.Context(), p)
	must.OK(t, err)
	if got := s.register(t, numbered(9), n, ahead); len(got) != 3 {
		t.Errorf("overlaps with %q, want 3 branches", got)
	}
}
