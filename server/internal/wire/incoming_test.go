package wire

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/server/internal/budget"
)

// A complete body holds the memory for parsing it.
func TestReadBodyCountsParsing(t *testing.T) {
	const size, total = 10_000, 50_000
	full := errors.New("full")
	b := budget.New(budget.Config{Total: total, Share: total, Wait: time.Nanosecond, Waiting: 1, ShareWaiting: 1,
		ShareFull: full, TotalFull: full})
	lease, other := b.Lease("ada"), b.Lease("ada")
	r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", size)))
	body, err := ReadBody(httptest.NewRecorder(), r, size, lease)
	if err != nil || len(body) != size {
		t.Fatalf("%d bytes, %v, want %d", len(body), err, size)
	}

	if err := other.Grow(t.Context(), total-BodyMemory*size+1); !errors.Is(err, full) {
		t.Errorf("the body counts less than %d times its size: %v", BodyMemory, err)
	}
	if err := other.Grow(t.Context(), total-(BodyMemory+1)*size); err != nil {
		t.Errorf("the body counts more than %d times its size: %v", BodyMemory+1, err)
	}
	lease.Release()
	if err := other.Grow(t.Context(), total); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestReadBodyLimit(t *testing.T) {
	for size, want := range map[int]error{999: nil, 1000: nil, 1001: ErrTooLarge, 100_000: ErrTooLarge} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", size)))
		r.ContentLength = -1 // unknown
		if _, err := ReadBody(httptest.NewRecorder(), r, 1000, nil); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", size, err, want)
		}
	}
}
