package service

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A part of an Instance starts after the parts that it uses, and stops before them.
type part struct {
	start func(ctx context.Context) error
	stop  func(s shutdown) error // may be nil
}

// A shutdown limits how long the parts take to stop: see [Instance.Stop].
type shutdown struct {
	delay, timeout time.Duration
}

// startParts starts parts in order. If one does not start, it stops those before it, and returns
// the error.
func startParts(ctx context.Context, parts []part) error {
	for i, p := range parts {
		if err := p.start(ctx); err != nil {
			return errors.Join(err, stopParts(parts[:i], shutdown{}))
		}
	}
	return nil
}

// stopParts stops parts in reverse order: all of them, even if some return errors.
func stopParts(parts []part, s shutdown) error {
	var errs []error
	for _, p := range slices.Backward(parts) {
		if p.stop != nil {
			errs = append(errs, p.stop(s))
		}
	}
	return errors.Join(errs...)
}
