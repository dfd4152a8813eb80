// Package parallel runs functions concurrently.
package parallel

import (
	"cmp"
	"sync"
)

// Do runs the functions concurrently and waits for all of them. If several fail, it
// returns the error of the first one in the argument list.
func Do(functions ...func() error) error {
	errs := make([]error, len(functions))
	var running sync.WaitGroup
	for i, f := range functions {
		running.Go(func() { errs[i] = f() })
	}
	running.Wait()
	return cmp.Or(errs...)
}

// Each calls f for each item, at most limit at the same time, and waits for all calls.
func Each[T any](limit int, items []T, f func(T)) {
	var running sync.WaitGroup
	places := make(chan struct{}, limit)
	for _, item := range items {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			f(item)
		})
	}
	running.Wait()
}
