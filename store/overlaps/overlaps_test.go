package overlaps_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/storetest"
	"github.com/ledgerd/ledgerd/store/txn"
)

// openWithTips returns a database with three tips that overlap, and a function that registers another one.
func openWithTips(t *testing.T) (s *store.Store, push func(sha, branch string)) {
	t.Helper()
	s = must.Get(store.Open(t.Context(), storetest.NewFile(t), store.Options{}))(t)
	t.Cleanup(func() { s.Close() })
	must.Get(s.CreateOrg(t.Context(), "acme"))(t)
	must.Get(s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host"))(t)
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

// The footprints that a failed write has cached are discarded, because the sequence numbers
// of its tips are reused.
func TestFailedWriteLeavesNoFootprints(t *testing.T) {
	s, _ := openWithTips(t)
	if must.Get(s.KeepsFootprint(t.Context()))(t) {
		t.Error("the footprint is still cached")
	}
}

func TestPreviewsAreLimitedInNumberAndTime(t *testing.T) {
	s, _ := openWithTips(t)
	for range overlaps.MaxPreviews {
		s.PreviewSlots() <- struct{}{}
	}

	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	query := ledger.RadarQuery{Registration: changesF("new")}
	if _, err := s.PreviewOverlaps(short, "acme", "api", query); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with %d other calls running: got %v, want %v", overlaps.MaxPreviews, err, context.DeadlineExceeded)
	}

	s.LimitPreviews(10 * time.Millisecond)
	if _, err := s.PreviewOverlaps(t.Context(), "acme", "api", query); !txn.IsUnavailable(err) {
		t.Errorf("after the time limit: got %v, want the code %s", err, ledger.CodeStorageUnavailable)
	}
	s.LimitPreviews(overlaps.MaxPreview)

	time.AfterFunc(10*time.Millisecond, func() { <-s.PreviewSlots() })
	got, err := s.PreviewOverlaps(t.Context(), "acme", "api", query)
	must.OK(t, err)
	if len(got.Overlaps) != 3 {
		t.Errorf("after waiting: got %d overlaps, want 3", len(got.Overlaps))
	}
	<-s.PreviewSlots()
	if len(s.PreviewSlots()) != 0 {
		t.Error("the call did not release its slot")
	}
}

// TestClosedOverlapsArePrunedInPages has more later tips than one page. Each call prunes
// the next page, and the call after the last page starts again.
func TestClosedOverlapsArePrunedInPages(t *testing.T) {
	s, push := openWithTips(t)
	for i := range overlaps.OverlapsPage {
		push(numbered(10+i), fmt.Sprint("branch", i))
	}
	must.OK(t, s.Withdraw(t.Context(), "acme", "api", numbered(0))) // earlier than all others
	closed := func() int { return must.Get(s.CountClosed(t.Context()))(t) }
	before := closed()

	next, err := s.PruneClosedOverlaps(t.Context(), 0)
	must.OK(t, err)
	if left := closed(); before-left != overlaps.OverlapsPage || next == 0 {
		t.Errorf("%d of %d closed overlaps are left after the first page, next page at %d", left, before, next)
	}
	next, err = s.PruneClosedOverlaps(t.Context(), next)
	must.OK(t, err)
	if left := closed(); left != 0 || next != 0 {
		t.Errorf("%d closed overlaps are left after the last page, next page at %d", left, next)
	}
}
