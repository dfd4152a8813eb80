// Package store stores the ledger in a database: it holds the SQL and the rules of
// what is stored. If a method that writes returns no error, its changes are on disk.
//
// A Store embeds rooms, each with its own tables. What they share, such as the write, is in package txn. Package sqldb
// is the interface to the database engine, package sqlite implements it, and package radarindex is the radar's index
// in memory.
package store

import (
	"context"
	"io"
	"sync"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/boards"
	"github.com/ledgerd/ledgerd/store/events"
	"github.com/ledgerd/ledgerd/store/facts"
	"github.com/ledgerd/ledgerd/store/lists"
	"github.com/ledgerd/ledgerd/store/orgs"
	"github.com/ledgerd/ledgerd/store/overlaps"
	"github.com/ledgerd/ledgerd/store/policies"
	"github.com/ledgerd/ledgerd/store/recheck"
	"github.com/ledgerd/ledgerd/store/record"
	"github.com/ledgerd/ledgerd/store/search"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/states"
	"github.com/ledgerd/ledgerd/store/txn"
	"github.com/ledgerd/ledgerd/store/upkeep"
	"github.com/ledgerd/ledgerd/store/webhooks"
)

// A Store is an open database. Its methods are safe for concurrent use.
type Store struct {
	*events.Journal
	*webhooks.Outbox
	*policies.Contracts
	*signers.Signers
	*access.Access
	*facts.Facts
	*overlaps.Radar
	*states.States
	*orgs.Registry
	*lists.Lists
	*boards.Boards
	*search.Finder
	*record.Recorder
	*recheck.Rechecker
	*upkeep.Upkeep

	db        *txn.DB
	jobs      *backlog.Jobs
	committed func(sqldb.Commit)

	closing   chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// Close waits for running reads and writes to finish, and closes the database.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.closeErr = s.db.Close()
	})
	return s.closeErr
}

// Now returns the current time of the ledger's clock.
func (s *Store) Now() ledger.Time { return s.db.Clock.Now() }

// CheckClock returns why nothing may be recorded because of the system clock, or nil.
func (s *Store) CheckClock() error { return s.db.Clock.Refusal() }

// WallTime returns the time that other machines probably have. It is the system clock,
// unless that has jumped ahead.
func (s *Store) WallTime() ledger.Time { return s.db.Clock.WallTime() }

// ClockStatus returns how the ledger's clock and the system clock differ.
func (s *Store) ClockStatus() ClockStatus { return s.db.Clock.Status() }

// A Query selects a page of a list.
type Query = txn.Query

// A ClockStatus says how the ledger's clock and the system clock differ.
type ClockStatus = txn.ClockStatus

// Names of the rooms that callers of a Store use.
type (
	// An EventFilter selects the events of a list.
	EventFilter = events.EventFilter
	// An AuditFilter selects the administrative actions of a list.
	AuditFilter = events.AuditFilter
	// An Event is an event of an org.
	Event = events.Event
	// A Tail reads an org's events as they are recorded.
	Tail = events.Tail
	// A Log is the transparency log of an org.
	Log = events.Log
	// A LogRoot is the root of a log.
	LogRoot = events.LogRoot
	// A Backlog is what waits of a task in an org.
	Backlog = backlog.Waiting
	// A ReceiptKey is a key of receipts.
	ReceiptKey = events.ReceiptKey
	// An Announcement is the event that announces a key of receipts, and its proof.
	Announcement = events.Announcement
	// A DeliveryFilter selects the deliveries of a list.
	DeliveryFilter = webhooks.DeliveryFilter
	// SecretKeys encrypt the secrets of webhooks in the database.
	SecretKeys = webhooks.SecretKeys
	// An UnreadType is how many statements of a type in an org no longer state an outcome.
	UnreadType = recheck.UnreadType
	// A Rereading is a recorded statement that this release reads otherwise.
	Rereading = recheck.Rereading
	// A StackedClaim is a claim of a merge, by earlier rules, whose source was built on an unmerged commit.
	StackedClaim = recheck.StackedClaim
	// A Certificate is one that a CA of an org issues.
	Certificate = signers.Certificate
	// An Exchange is a token of an issuer with the rule that it fulfils.
	Exchange = access.Exchange
	// An AttentionFilter selects what needs attention.
	AttentionFilter = boards.AttentionFilter
	// An EnvironmentFilter selects the environments of a list.
	EnvironmentFilter = boards.EnvironmentFilter
	// An OverviewFilter selects the repos of an overview.
	OverviewFilter = boards.OverviewFilter
	// An AttestationFilter selects the attestations of a list.
	AttestationFilter = lists.AttestationFilter
	// A CommitFilter selects the commits of a list.
	CommitFilter = lists.CommitFilter
	// A Decision is what is decided about a commit.
	Decision = lists.Decision
	// A DecisionQuery asks whether a commit has reached a state.
	DecisionQuery = lists.DecisionQuery
	// An ExceptionFilter selects the exceptions of a list.
	ExceptionFilter = lists.ExceptionFilter
	// OrgViolations counts the violations of an org.
	OrgViolations = lists.OrgViolations
	// Stats are numbers about a database.
	Stats = lists.Stats
	// A ViolationFilter selects the violations of a list.
	ViolationFilter = lists.ViolationFilter
	// A SearchQuery is a search in an org.
	SearchQuery = search.Query
	// A RadarFilter selects the overlaps of a list.
	RadarFilter = overlaps.RadarFilter
	// A ReviewDraft is a statement that was prepared for a member to sign.
	ReviewDraft = access.ReviewDraft
	// A TokenClient is a token with the oldest version of ledgerd that uses it.
	TokenClient = access.TokenClient
	// A Restored says which events a restored database has of an org.
	Restored = events.Restored
	// A Cut is the end of what a restored database has of the history that a client knows.
	Cut = events.Cut
)

// ReadSecretKeys reads a file with keys, one per line. See webhooks.ReadSecretKeys.
func ReadSecretKeys(r io.Reader) (SecretKeys, error) { return webhooks.ReadSecretKeys(r) }

// LogRoots returns the roots of all logs. See events.LogRoots.
func LogRoots(c *sqldb.Conn) ([]LogRoot, error) { return events.LogRoots(c) }

// ErrKeyringChanged is the error of Record if the keyring is not the latest. See record.ErrKeyringChanged.
var ErrKeyringChanged = record.ErrKeyringChanged

// SettingsStart is the place before the first row of an org. See Settings.
const SettingsStart = orgs.SettingsStart

// MaxNamed is the maximum number of signers that are stored for a name. See signers.MaxNamed.
const MaxNamed = signers.MaxNamed

// MaxClockOffset is how far the system clock may be off before nothing is recorded.
const MaxClockOffset = txn.MaxClockOffset

// WithActor returns a context whose administrative actions are by the actor. See txn.WithActor.
func WithActor(ctx context.Context, a ledger.Actor) context.Context { return txn.WithActor(ctx, a) }

// Unread returns the error of a read after a write that is on disk. See txn.Unread.
func Unread(done string, err error) error { return txn.Unread(done, err) }

// DigestKey returns the key by which the artifact with a digest is stored. See facts.DigestKey.
func DigestKey(digest string) []byte { return facts.DigestKey(digest) }

// LastStamp returns the latest time in the ids of a database. See upkeep.LastStamp.
func LastStamp(c *sqldb.Conn) (ledger.Time, error) { return upkeep.LastStamp(c) }

// Tasks returns the names of all tasks of the backlog.
func Tasks() []string { return backlog.Tasks() }
