package witness

import (
	"errors"
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// counts counts what a witness has done.
type counts struct {
	mu      sync.Mutex
	results map[string]uint64
	against map[string]uint64 // inconsistent checkpoints, by origin
}

// The results of add-checkpoint requests.
const (
	resultCosigned     = "cosigned"
	resultStale        = "stale"
	resultRefused      = "refused"
	resultInconsistent = "inconsistent"
	resultFailed       = "failed"
)

// Results lists the results of add-checkpoint requests.
func Results() []string {
	return []string{resultCosigned, resultStale, resultRefused, resultInconsistent, resultFailed}
}

func newCounts() *counts {
	return &counts{results: make(map[string]uint64), against: make(map[string]uint64)}
}

func (c *counts) add(err error) {
	result := resultFailed
	_, stale := errors.AsType[*store.StaleWitnessError](err)
	e, _ := errors.AsType[*ledger.Error](err)
	switch {
	case err == nil:
		result = resultCosigned
	case stale:
		result = resultStale
	case e != nil && e.Code == ledger.CodeInconsistentCheckpoint:
		result = resultInconsistent
	case e != nil && (e.Code == ledger.CodeInvalidCheckpoint || e.Code == ledger.CodeUntrustedCheckpoint ||
		e.Code == ledger.CodeNotFound):
		result = resultRefused
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[result]++
}

func (c *counts) inconsistent(origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.against[origin]++
}
