package store

import (
	"cmp"
	"log/slog"

	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/boards"
	"github.com/ledgerd/ledgerd/store/delivery"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/history"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/orgs"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/recheck"
	"github.com/ledgerd/ledgerd/store/record"
	"github.com/ledgerd/ledgerd/store/search"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/upkeep"
	"github.com/ledgerd/ledgerd/store/webhooks"
)

// newStore returns a store without its engine. Each room is given those below it.
func newStore(o Options, server string) *Store {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		db:        txn.NewDB(o.Logger),
		committed: o.Committed,
		closing:   make(chan struct{}),
	}

	s.jobs = backlog.New(s.db, server)
	s.Journal = events.New(s.db)
	s.Outbox = webhooks.New(s.db, s.Journal, o.SecretKeys, cmp.Or(o.KeepDeliveries, DefaultKeepDeliveries))
	s.Contracts = policies.New(s.db)
	s.Signers = signers.New(s.db, s.Journal, s.jobs, s.Contracts, o.ParseRoot)
	s.Access = access.New(s.db, s.Journal, s.Signers, o.Providers)

	past := history.New(s.db)
	s.Facts = facts.New(s.db, s.Journal, s.jobs, s.Contracts, s.Signers, past)
	s.Radar = overlaps.New(s.db, s.Journal, s.jobs, s.Contracts, s.Facts,
		cmp.Or(o.RadarMemory, DefaultRadarMemory), s.closing)
	s.States = states.New(s.db, s.Journal, s.jobs, s.Signers, s.Facts, s.Radar, s.closing)

	s.Registry = orgs.New(s.db, s.jobs, s.Journal, s.Contracts, s.Facts, s.Radar, s.States, s.Outbox)
	s.Lists = lists.New(s.db, s.Journal, s.Contracts, s.Signers, s.Facts, s.Radar, s.States,
		delivery.New(s.Facts, past))
	s.Boards = boards.New(s.db, s.Signers, s.Facts, s.States, s.Lists)
	s.Finder = search.New(s.db, s.Signers, s.Facts, s.States, s.Lists)
	s.Recorder = record.New(s.db, s.Journal, s.Signers, s.Access, s.Facts, s.Radar, s.States, s.Lists,
		past)
	s.Rechecker = recheck.New(s.db, s.Facts, s.Radar, past)
	s.Upkeep = upkeep.New(s.db, s.jobs, s.Journal, s.Outbox, s.Signers, s.Access, s.Facts, s.Radar, s.States,
		s.Registry)
	return s
}
