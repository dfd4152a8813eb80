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

// shares is into how many parts Share divides a list.
const shares = 8

// Share calls f for each item, on all CPUs, and waits for all calls. It divides the list into parts, since a call
// may take less time than to begin it.
func Share[T any](items []T, f func(T)) {
	size := (len(items) + shares - 1) / shares
	var parts [][]T
	for ; len(items) > size; items = items[size:] {
		parts = append(parts, items[:size])
	}
	Each(shares, append(parts, items), func(part []T) {
		for _, item := range part {
			f(item)
		}
	})
}
