package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store/radarindex"
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
				p, err := s.prospect(t.Context(), "acme", "api", numbered(9), n)
				must.OK(t, err)
				if beforeScan {
					test.change(t, s, push)
				}
				ahead, err := s.scanProspect(t.Context(), p)
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
func (s *Store) register(t *testing.T, sha string, n ledger.Registration, ahead *prospectScan) (branches []string) {
	t.Helper()
	done, err := write(t.Context(), s, "", func(t *tx) (registered, error) {
		return t.register("acme", "api", sha, submission{Registration: n, concernsRadar: concernsRadar(n)}, ahead)
	})
	must.OK(t, err)
	for _, f := range done.radar.overlaps {
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
	p, err := s.prospect(t.Context(), "acme", "api", numbered(9), n)
	must.OK(t, err)
	push(numbered(9), "new")
	ahead, err := s.scanProspect(t.Context(), p)
	must.OK(t, err)
	if got := s.register(t, numbered(9), n, ahead); len(got) != 3 {
		t.Errorf("overlaps with %q, want 3 branches", got)
	}
}

// The footprints that a failed write has cached are discarded, because the sequence numbers
// of its tips are reused.
func TestFailedWriteLeavesNoFootprints(t *testing.T) {
	s, _ := openWithTips(t, Options{})
	failed := errors.New("failed")
	err := s.write(t.Context(), "", func(t *tx) error {
		t.batch.recent.Add(radarindex.Tip{CommitID: 9, Seq: 4}, radar.New(nil).Footprint(nil))
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	must.OK(t, s.write(t.Context(), "", func(t *tx) error {
		if t.batch.recent.Footprint(&radarindex.Tip{CommitID: 9, Seq: 4}, 0) != nil {
			return errors.New("the footprint is still cached")
		}
		return nil
	}))
}

func TestFaultPreviewsAreLimitedInNumberAndTime(t *testing.T) {
	s, _ := openWithTips(t, Options{})
	for range maxPreviews {
		s.previewSlots <- struct{}{}
	}

	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	query := ledger.RadarQuery{Registration: changesF("new")}
	if _, err := s.PreviewOverlaps(short, "acme", "api", query); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with %d other calls running: got %v, want %v", maxPreviews, err, context.DeadlineExceeded)
	}

	s.maxPreview = 10 * time.Millisecond
	if _, err := s.PreviewOverlaps(t.Context(), "acme", "api", query); !txn.IsUnavailable(err) {
		t.Errorf("after the time limit: got %v, want the code %s", err, ledger.CodeStorageUnavailable)
	}
	s.maxPreview = maxPreview

	time.AfterFunc(10*time.Millisecond, func() { <-s.previewSlots })
	got, err := s.PreviewOverlaps(t.Context(), "acme", "api", query)
	must.OK(t, err)
	if len(got.Overlaps) != 3 {
		t.Errorf("after waiting: got %d overlaps, want 3", len(got.Overlaps))
	}
	<-s.previewSlots
	if len(s.previewSlots) != 0 {
		t.Error("the call did not release its slot")
	}
}
