package txn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A slowError is an Unready that takes some time to prepare.
type slowError time.Duration

func (slowError) Error() string { return "not ready" }

func (e slowError) Prepare(ctx context.Context) error { return pause(ctx, time.Duration(e)) }

// pause waits for some time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAWriteIsTriedAgain(t *testing.T) {
	refused := ledger.Errorf(ledger.CodeStaleStatement, "refused")
	for name, test := range map[string]struct {
		patient time.Duration // of the caller
		took    time.Duration // each try, whatever the context
		errs    []error       // of the tries; the last one repeats
		tries   int
		after   time.Duration
		want    error // nil for errRestless
	}{
		"once":                    {0, 0, []error{refused}, 1, 0, refused},
		"again":                   {0, 0, []error{slowError(1), slowError(2), refused}, 3, 3, refused},
		"as often as it may be":   {0, 0, []error{slowError(0)}, maxTries, 0, nil},
		"for as long as it may":   {0, 0, []error{slowError(2 * time.Second)}, 3, MaxWrite, nil},
		"after the lock":          {0, 9 * time.Second, []error{refused}, 1, 9 * time.Second, refused},
		"too late after the lock": {0, 9 * time.Second, []error{slowError(1)}, 1, 9 * time.Second, nil},
		"refused late":            {0, 3 * time.Second, []error{slowError(0), refused}, 2, 6 * time.Second, refused},
		"more patience": {7 * time.Second, 9 * time.Second, []error{context.DeadlineExceeded}, 1, 9 * time.Second,
			context.DeadlineExceeded},
		"less patience": {3 * time.Second, 0, []error{slowError(2 * time.Second)}, 2, 3 * time.Second,
			context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.patient > 0 {
					limited, cancel := context.WithTimeout(ctx, test.patient)
					defer cancel()
					ctx = limited
				}

				began, tries := time.Now(), 0
				err := Retry(ctx, func(ctx context.Context) error {
					if ctx.Err() != nil {
						return ctx.Err() // as the engine does
					}
					tries++
					time.Sleep(test.took)
					return test.errs[min(tries, len(test.errs))-1]
				})
				if after := time.Since(began); tries != test.tries || after != test.after {
					t.Errorf("%d tries in %v, want %d in %v", tries, after, test.tries, test.after)
				}
				if test.want == nil {
					wantRestless(t, err)
				} else if !errors.Is(err, test.want) {
					t.Errorf("%v, want %v", err, test.want)
				}
			})
		})
	}
}

func wantRestless(t *testing.T, err error) {
	t.Helper()
	const text = "nothing was recorded (send it again)"
	if !IsCode(err, ledger.CodeStorageUnavailable) || !strings.Contains(err.Error(), text) {
		t.Errorf("%v, want errRestless", err)
	}
}
