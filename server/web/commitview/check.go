package commitview

import (
	"cmp"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/server/web/format"
)

// A Check is a predicate of a commit, with the newest result of each shard.
type Check struct {
	Predicate string
	// Status is the worst of the shards' that are trusted.
	Status ledger.Status
	Shards []Shard
	// Counts count the shards by status, worst first, if there are several.
	Counts []ShardCount
	// Signers are the names of the shards' signers, each once.
	Signers []string
	// Earlier counts the attestations that newer ones replaced.
	Earlier int
	// At is when the newest shard was recorded.
	At ledger.Time
	// RunURL is where the run of the shard is that decides Status; empty if not known.
	RunURL string
}

// A Shard is the newest attestation of a signer for a slot.
type Shard struct {
	ledger.AttestationRecord
	// Carried says why evidence of another commit is among the shards; nil for the commit's
	// own.
	Carried *ledger.CarriedEvidence
}

// A ShardCount is the number of shards with a status.
type ShardCount struct {
	Status ledger.Status
	Shards int
}

// Failed reports whether a shard failed.
func (c Check) Failed() bool { return c.Status.IsFailure() }

// RunURL returns the address of the shard's run; empty if it is not known.
func (s Shard) RunURL() string {
	if s.Verification == nil {
		return ""
	}
	return s.Verification.RunURL
}

// A shardKey identifies a shard.
type shardKey struct {
	predicate, slot, identity string
	distrusted                bool
}

// Fold folds the attestations of a commit, newest first, and the evidence that it takes over
// from others into one check per predicate: those that failed first.
func Fold(attestations []ledger.AttestationRecord, carried []ledger.CarriedEvidence) []Check {
	var checks []Check
	places := make(map[string]int)
	add := func(predicate string) *Check {
		at, ok := places[predicate]
		if !ok {
			at = len(checks)
			places[predicate] = at
			checks = append(checks, Check{Predicate: predicate})
		}
		return &checks[at]
	}

	seen := make(map[shardKey]bool)
	for _, a := range attestations {
		c, key := add(a.Predicate), shardKey{a.Predicate, a.Slot, a.Identity, false}
		replaced := seen[key]
		key.distrusted = a.Distrusted // then what it replaced is a shard, too
		if replaced || seen[key] {
			c.Earlier++
			continue
		}
		seen[key] = true
		c.Shards = append(c.Shards, Shard{AttestationRecord: a})
	}
	for i := range carried {
		e := &carried[i]
		c := add(e.Predicate)
		c.Shards = append(c.Shards, Shard{Carried: e, AttestationRecord: ledger.AttestationRecord{
			ID: e.Attestation, Commit: e.Commit, Predicate: e.Predicate, Identity: e.Identity,
			Signer: format.PlainName(e.Identity), Result: ledger.Result{Status: e.Status}}})
	}

	for i := range checks {
		checks[i].finish()
	}
	slices.SortStableFunc(checks, func(a, b Check) int {
		return cmp.Or(cmp.Compare(severity(a.Status), severity(b.Status)), cmp.Compare(a.Predicate, b.Predicate))
	})
	return checks
}

// finish sorts the shards, worst first, and sums them up.
func (c *Check) finish() {
	weight := func(s *Shard) int {
		if s.Distrusted {
			return len(severities) // they decide nothing
		}
		return severity(s.Result.Status)
	}
	slices.SortStableFunc(c.Shards, func(a, b Shard) int { return cmp.Compare(weight(&a), weight(&b)) })
	worst := c.Shards[0]
	c.Status = worst.Result.Status

	for _, s := range c.Shards {
		c.At = max(c.At, s.RecordedAt)
		if s.Result.Status == c.Status {
			c.RunURL = cmp.Or(c.RunURL, s.RunURL())
		}
		if !slices.Contains(c.Signers, s.Identity) {
			c.Signers = append(c.Signers, s.Identity)
		}
		if n := len(c.Counts); n > 0 && c.Counts[n-1].Status == s.Result.Status {
			c.Counts[n-1].Shards++
		} else {
			c.Counts = append(c.Counts, ShardCount{s.Result.Status, 1})
		}
	}
	if len(c.Shards) == 1 {
		c.Counts = nil
	}
}

// severities are the statuses, worst first.
var severities = []ledger.Status{ledger.Fail, ledger.Errored, ledger.Warn, ledger.Skip, ledger.Recorded, ledger.Pass}

func severity(s ledger.Status) int { return slices.Index(severities, s) }
