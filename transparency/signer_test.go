package transparency

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"github.com/ledgerd/ledgerd/internal/must"
)

func TestLogIsSignedAsItGrows(t *testing.T) {
	f := newFixture(t)
	f.sign(true)
	if l := f.log(); l.Leaves > 0 {
		f.wantSigned()
	}
	for _, n := range []int{1, 1, 300} {
		f.grow(n)
		f.sign(false)
		f.wantSigned()
	}

	before := f.files()
	f.sign(false)
	f.sign(true)
	if f.files() != before {
		t.Error("a log that has not grown was signed again")
	}

	f.reopen(func() {})
	f.sign(true)
	f.wantSigned()
	f.grow(1)
	f.sign(false)
	f.wantSigned()
	if l := f.log(); strings.Contains(f.output.String(), "NOT SIGNED") || l.SignedAt == 0 {
		t.Errorf("signed at %v; logged:\n%s", l.SignedAt, f.output)
	}
}

// A log is signed at most once a second, and within a second.
func TestLogIsSignedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.grow(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { f.signer.Run(ctx); close(done) }()
		synctest.Wait()

		start, last, size := time.Now(), time.Now(), f.log().Size
		if size == 0 {
			t.Error("the log is not signed at the start")
		}
		signed := 0
		for time.Since(start) < 20*time.Second {
			f.grow(1)
			time.Sleep(90 * time.Millisecond)
			synctest.Wait()
			now := f.log().Size
			if now == size {
				continue
			}
			if since := time.Since(last); since < interval-90*time.Millisecond || since > interval+90*time.Millisecond {
				t.Errorf("signed after %v", since)
			}
			size, last = now, time.Now()
			signed++
		}
		if signed < 18 || signed > 20 {
			t.Errorf("signed %d times in 20 seconds", signed)
		}
		cancel()
		<-done
		must.OK(t, f.store.Close())
	})
}

// Only the base URL can name a log: the Host header differs between clients.
func TestNothingIsSignedWithoutABaseURL(t *testing.T) {
	f := newFixture(t)
	f.grow(1)
	f.signer.BaseURL = nil
	f.signer.Run(t.Context()) // returns
	if l := f.log(); l.Size != 0 || l.Origin != "" || f.files() != "" {
		t.Errorf("got %+v", l)
	}
}
