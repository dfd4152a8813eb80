package check

import (
	"cmp"
	"context"
	"time"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/check/signers"
)

// Options configures a check.
type Options struct {
	// Progress, if not nil, is called after each step with what is being checked, and how far.
	Progress func(step string, done, total int64)
	// Seen are checkpoints that the logs must extend.
	Seen []Seen
	// Others, if not nil, returns what others have seen of a log, and what could not be asked.
	Others func(ctx context.Context, origin string) (list []Seen, unchecked []string)

	// Now is the clock by which states are derived; nil for that of the machine.
	Now func() time.Time
	// ParseRoot parses trusted roots. Without it, they vouch for nobody.
	ParseRoot identity.RootParser
	// SecretKeys decrypt the secrets of webhooks.
	SecretKeys store.SecretKeys
	// RadarMemory limits the memory in which overlaps are derived again, as store.Options.RadarMemory does.
	RadarMemory int64

	maxKnown int // if not 0, replaces the constant, in tests
}

// maxKnown limits the commits of an org whose facts are compared with their events. An entry
// takes about 100 bytes.
const maxKnown = 1_000_000

// A Seen is a checkpoint of a log that was kept apart from the database.
type Seen struct {
	// What names it in problems, such as the file.
	What   string
	Signed []byte
	// IsLast says that it is the last one that the server signed. It is not compared with a log
	// that was replaced, because the first event of the next log names it.
	IsLast bool
}

// A seenCheckpoint is a Seen that was parsed.
type seenCheckpoint struct {
	Seen
	origin string
	found  bool // in the database
}

// A mapping says which attestations were mapped again by later rules than their own.
type mapping struct {
	// below is the row id below which attestations may have another outcome than the one with which they were
	// recorded.
	below int64
	// isDone reports whether all are mapped by the rules of this release.
	isDone bool
	// isCorrected reports whether an earlier release may have corrected since when attestations age.
	isCorrected bool
}

// A checker checks one database.
type checker struct {
	*report.Database
	// store derives states, on the same engine.
	store    *store.Store
	step     func(step string, done, total int64)
	vouchers *signers.Vouchers
	mapping  mapping
	seen     []*seenCheckpoint
	others   func(ctx context.Context, origin string) ([]Seen, []string)
	maxKnown int
}

func newChecker(db store.Source, o Options) *checker {
	d := report.Of(db)
	reader := store.NewReader(d.Source, store.Options{
		ParseRoot: o.ParseRoot, SecretKeys: o.SecretKeys, Now: o.Now, RadarMemory: o.RadarMemory,
	})
	c := &checker{
		Database: d, store: reader,
		step: o.Progress, others: o.Others, maxKnown: cmp.Or(o.maxKnown, maxKnown),
	}
	c.vouchers = signers.NewVouchers(o.ParseRoot)
	if c.step == nil {
		c.step = func(string, int64, int64) {}
	}
	return c
}
