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
