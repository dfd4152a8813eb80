// Package parallel runs functions at the same time.
package parallel

import (
	"cmp"
	"sync"
)

// Do runs the functions concurrently and waits for all of them. Of several
// errors it returns that of the first function in the list.
func Do(functions ...func() error) error {
	errs := make([]error, len(functions))
	var running sync.WaitGroup
	for i, f := range functions {
		running.Go(func() { errs[i] = f() })
	}
	running.Wait()
	return cmp.Or(errs...)
}
