package check

import (
	"context"
)

// readAhead is the number of pages that are read before they are used.
const readAhead = 2

// ahead calls next until it reports that there is nothing more, and use with each result. next
// is called while use runs.
func ahead[T any](ctx context.Context, next func(context.Context) (T, bool, error), use func(T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results, failed := make(chan T, readAhead), make(chan error, 1)
	go func() {
		defer close(results)
		for {
			v, ok, err := next(ctx)
			if err != nil || !ok {
				failed <- err
				return
			}
			select {
			case results <- v:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()

	for v := range results {
		if err := use(v); err != nil {
			cancel()
			for range results { //nolint:revive // until next has returned
			}
			return err
		}
	}
	return <-failed
}
