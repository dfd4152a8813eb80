package evidence

import (
	"context"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Options says what to export.
type Options struct {
	Org, Repo string
	// Commit is the ID of the only commit. If it is empty, the commits are those that got an
	// attestation between Since and Until.
	Commit       string
	Since, Until ledger.Time
	// Server and Version are those of the manifest.
	Server, Version string
	Now             ledger.Time
	// Progress is called as things are read; nil for nobody.
	Progress func(what string, done, total int64)
}

// An exporter exports commits.
type exporter struct {
	Options
	*reader
	out      *writer
	manifest Manifest

	log    ledger.Log
	page   Page
	events []exported // whose proofs come last
	seen   map[string]bool
	// identities has the IDs of those that have signed; nil if the ledger does not say which.
	identities map[string]bool
	// keys has those of passkeys that have confirmed attestations.
	keys     map[string]bool
	versions map[int]bool // of the contract that commits name
	earliest ledger.Time  // when the first of the commits became known
	// transitions has those of each commit, oldest first.
	transitions map[string][]ledger.Transition
	facts       map[string]string // digests of what is known of each commit
	noReceipts  bool              // the server signs none
}

// An exported is an event whose body is in the export.
type exported struct {
	id string
	at ledger.Time
}

// chunk is how many attestations, or proofs, are read before they are written.
const chunk = 64

// event exports the body of an event, which is nil if it was pruned. Its proof comes later.
func (e *exporter) event(id string, at ledger.Time, body []byte) error {
	if e.seen[id] {
		return nil
	}
	e.seen[id] = true
	e.events = append(e.events, exported{id, at})
	if body == nil {
		e.manifest.Pruned = append(e.manifest.Pruned, EventFile(id))
		return nil
	}
	return e.out.add(EventFile(id), at, body)
}

// await repeats do until it reports that the log covers what is asked for, for a limited time. A
// server signs new events within a second.
func (e *exporter) await(ctx context.Context, most time.Duration, do func() (signed bool, err error)) error {
	deadline := time.Now().Add(most)
	for {
		signed, err := do()
		if signed || err != nil || time.Now().After(deadline) {
			return err
		}
		if err := wait(ctx, signInterval); err != nil {
			return err
		}
	}
}

const (
	signTimeout       = 10 * time.Second
	checkpointTimeout = 3 * time.Second // the server may sign none, as for receipts
	receiptTimeout    = 3 * time.Second
	signInterval      = 250 * time.Millisecond
)
