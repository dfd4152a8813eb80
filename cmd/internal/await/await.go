// Package await polls the ledger until something has happened, such as that commits, or the artifacts built
// from them, have reached a state.
package await

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ledgerd/ledgerd/client"
)

// A Poll looks for something again and again, at intervals that grow from First to Last,
// until it has happened or the time For is over.
type Poll[T any] struct {
	First, Last, For time.Duration
	// Look looks once. done reports whether it has happened.
	Look func(context.Context) (v T, done bool, err error)
	// Waiting is called before each wait, with what Look returned. It may be nil.
	Waiting func(v T, err error)
}

// Run polls, and returns the last result. Temporary errors are retried.
func (p Poll[T]) Run(ctx context.Context) (T, error) {
	deadline := time.Now().Add(p.For)
	for interval := p.First; ; interval = min(interval*3/2, p.Last) {
		v, done, err := p.Look(ctx)
		remaining := time.Until(deadline)
		if err == nil && done || remaining <= 0 || err != nil && !temporary(err) {
			return v, err
		}
		if p.Waiting != nil {
			p.Waiting(v, err)
		}

		select {
		case <-time.After(min(interval, remaining)):
		case <-ctx.Done():
			return v, errors.New("interrupted while waiting")
		}
	}
}

// temporary reports whether a retry may succeed: the server is unreachable, overloaded or
// failing. A server that answers with another record is the wrong one.
func temporary(err error) bool {
	if _, isAnother := errors.AsType[*client.AnotherError](err); isAnother {
		return false
	}
	e, ok := errors.AsType[*client.Error](err)
	return !ok || e.Status >= 500 || e.Status == http.StatusTooManyRequests
}
