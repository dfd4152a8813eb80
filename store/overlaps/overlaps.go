// Package overlaps is the room of the radar: the tips of branches, the overlaps between their changes, and what would
// overlap with a change that is not registered. How two changes are compared is in package radar, and the index in
// memory in package radarindex. Its tables are tips and overlaps.
//
// A pair of tips is stored once, with the one registered later and with its strongest path. Whether it is open follows
// from the two tips, so a tip that ends writes nothing to its pairs.
package overlaps

import (
	"time"

	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/radarindex"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A Radar has the tips and overlaps of repos. Its methods are safe for concurrent use, except those with a txn.Tx,
// which the writer's goroutine calls.
type Radar struct {
	db       *txn.DB
	journal  *events.Journal
	jobs     *backlog.Jobs
	policies *policies.Contracts
	facts    *facts.Facts

	tips *radarindex.Set // the indexes of the tips on disk
	// previewSlots limits the number of concurrent PreviewOverlaps calls.
	previewSlots chan struct{}
	maxPreview   time.Duration   // limit of each of them
	closing      <-chan struct{} // is closed when the database is

	// Only the writer's goroutine uses what follows. recent holds the footprints of the tips registered last,
	// and index is the refreshed index of the repo that the write is about; nil if not needed.
	recent radarindex.Recent
	index  *radarindex.Index
}

// MaxPreviews is the maximum number of concurrent calls of PreviewOverlaps. A call can cost
// as much as a registration, but needs only read access.
const MaxPreviews = 2

// MaxPreview is the maximum time that a call of PreviewOverlaps waits and runs. Most of it
// is for the first call in a large repo, which may have to build the radar's index.
const MaxPreview = 30 * time.Second

// New returns the room of a database. memory is the approximate limit of the indexes, in bytes. Previews end when
// closing is closed.
func New(
	db *txn.DB, journal *events.Journal, jobs *backlog.Jobs, contracts *policies.Contracts, known *facts.Facts,
	memory int64, closing <-chan struct{},
) *Radar {
	ra := &Radar{
		db: db, journal: journal, jobs: jobs, policies: contracts, facts: known, tips: radarindex.NewSet(memory),
		previewSlots: make(chan struct{}, MaxPreviews), maxPreview: MaxPreview, closing: closing,
	}
	db.Attach(txn.Part{
		Keep: func(*txn.Tx) { ra.index = nil }, Discard: ra.discard, AfterRollback: ra.discard,
	})
	return ra
}

// discard drops what a failed write has left: the sequence numbers of its tips will be reused.
func (ra *Radar) discard() { ra.index, ra.recent = nil, radarindex.Recent{} }
