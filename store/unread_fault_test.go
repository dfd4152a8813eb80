package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
)

// TestFaultErrorAfterTheWriteSaysSo has a registration fail at each moment at which it
// reads the clock. An error must not look as if nothing was changed if
// the write is on disk.
func TestFaultErrorAfterTheWriteSaysSo(t *testing.T) {
	left, cancel := 0, func() {}
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "ledger.db"), store.Options{Now: func() time.Time {
		if left--; left == 0 {
			cancel()
		}
		return time.Now()
	}})
	must.OK(t, err)
	defer s.Close()
	storetest.CreateAcme(t, s)

	failing := func(moment int, do func(context.Context) error) error {
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		left = moment
		return do(ctx)
	}
	inFlight := func(n int) bool {
		c, err := s.Commit(t.Context(), "acme", "api", sha(n))
		return err == nil && c.InFlight
	}

	failed := 0
	for moment := 1; moment <= 12; moment++ {
		branch := fmt.Sprintf("branch-%d", moment)
		err := failing(moment, func(ctx context.Context) error {
			_, _, err := s.Register(ctx, "acme", "api", sha(moment), ledger.Registration{Branch: branch})
			return err
		})
		if err != nil && inFlight(moment) {
			failed++
			if !strings.HasPrefix(err.Error(), "the commit was registered, but") {
				t.Errorf("moment %d: the commit was registered, and the error is %q", moment, err)
			}
		}
	}
	if failed == 0 {
		t.Error("no registration failed after the write")
	}
}

func TestFaultUnreadNamesWhatWasDone(t *testing.T) {
	unavailable := ledger.Errorf(ledger.CodeStorageUnavailable, "the disk fails")
	notFound := ledger.Errorf(ledger.CodeNotFound, "commit not found")
	for _, test := range []struct {
		err  error
		want string
	}{
		{unavailable, "it was done, but its record cannot be read now: the disk fails"},
		{context.Canceled, "it was done, but its record cannot be read now: context canceled"},
		{context.DeadlineExceeded, "it was done, but its record cannot be read now: context deadline exceeded"},
		{notFound, "commit not found"},
	} {
		if got := store.Unread("it was done", test.err); got.Error() != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if err := store.Unread("it was done", nil); err != nil {
		t.Errorf("got %v for no error", err)
	}
}
