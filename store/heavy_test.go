package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestHeavyCommitsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeavyLimit()
		// serve serves a request, and returns how long it had to wait.
		serve := func(commit string, work int64, took time.Duration) time.Duration {
			began := time.Now()
			leave, err := h.enter(t.Context(), commit)
			if err != nil {
				t.Fatal(err)
			}
			waited := time.Since(began)
			time.Sleep(took)
			leave(work)
			return waited
		}

		for _, step := range []struct {
			commit string
			work   int64
			waits  time.Duration
			why    string
		}{
			{"a", heavyWork + 1, 0, "nobody knows yet that it is heavy"},
			{"a", heavyWork + 1, 0, "the first heavy request"},
			{"b", heavyWork, 0, "another commit, which is not heavy"},
			{"a", heavyWork + 1, 3 * time.Millisecond, "the rest of the one before, less the request between"},
			{"a", 1, 4 * time.Millisecond, "the rest of the one before"},
			{"a", 1, 0, "it is not heavy any more"},
		} {
			took := 4 * time.Millisecond
			if step.commit == "b" {
				took = time.Millisecond
			}
			if waited := serve(step.commit, step.work, took); waited != step.waits {
				t.Errorf("%s (%s): waited %s, want %s", step.commit, step.why, waited, step.waits)
			}
		}

		serve("c", heavyWork+1, 0)
		serve("c", heavyWork+1, time.Hour)
		if waited := serve("c", 0, 0); waited != maxRest {
			t.Errorf("waited %s after an hour of work, want %s", waited, maxRest)
		}
		time.Sleep(time.Second) // the timers end
	})
}

// A request that waits for its turn ends when its client leaves.
func TestHeavyCommitsDoNotOutwaitTheirClients(t *testing.T) {
	h := newHeavyLimit()
	h.commits.put("a", true)
	h.slot <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.enter(ctx, "a"); err != context.Canceled {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// Registrations of a commit with much evidence take turns, too.
func TestHeavyRegistrationsTakeTurns(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	var set []*drawn
	for i := range 300 {
		set = append(set, stated("ci", 0, fmt.Sprint("test:", i), ledger.Pass))
	}
	w.recordSet(t, set)
	w.setLarge(t, 0)
	register := func(ctx context.Context) error {
		_, _, err := w.Register(ctx, "acme", "api", numbered(0), ledger.Registration{Target: "main"})
		return err
	}

	check(t, register(t.Context()))
	if isHeavy, _ := w.heavy.commits.get(requestKey("acme", "api", numbered(0))); !isHeavy {
		t.Error("the commit is not known as heavy")
	}
	w.heavy.slot <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := register(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second registration: %v, want %v", err, context.Canceled)
	}
	<-w.heavy.slot
	check(t, register(t.Context()))
}
