// Package derived checks what a database has besides the log, which follows from the events and from each other:
// states, environments, violations, overlaps, deliveries and counters.
package derived

import (
	"context"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/check/signers"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A Subject is what is checked: an org, as it was when its check began.
type Subject struct {
	*report.Database
	Store   *store.Store // derives states, on the same engine
	Signers *signers.Org // of the org
	ID      int64
	Name    string
	End     int64 // the seq of its next event
	Deleted bool  // then no state is derived
	// MappedBelow is the row id below which attestations may have been mapped again.
	MappedBelow int64
	MaxKnown    int // limits the commits whose facts are compared
}

// An Org is an org, with what its events say of its repos.
type Org struct {
	Subject
	// former has the names that the org and its repos had, by the row id of the repo; 0 is the org.
	former map[int64][]string
	// policies has the events of contracts by the row id of the repo and version.
	policies   map[int64]map[int64]*ledger.PolicyEvent
	facts      loggedFacts
	violations loggedViolations
	// rollbacks has, by row id, to which commits attestations have rolled back; empty for none.
	rollbacks map[int64]string
	// finished has, by row id, when deployments finished whose rows say later.
	finished map[int64]ledger.Time
}

// New returns an org of which no event was read.
func New(conn *sqldb.Conn, s Subject) (*Org, error) {
	o := &Org{
		Subject: s, policies: make(map[int64]map[int64]*ledger.PolicyEvent),
		facts: loggedFacts{
			latest: make(map[shortDigest]shortDigest), objects: make(map[shortDigest]bool), limit: s.MaxKnown,
		},
		violations: newLoggedViolations(), rollbacks: make(map[int64]string), finished: make(map[int64]ledger.Time),
	}
	return o, o.readFormer(conn)
}

// Add adds an event, which must be newer than those before. said is its body; nil if that cannot be trusted.
func (o *Org) Add(repoID int64, kind ledger.EventType, said ledger.Event) {
	o.facts.add(repoID, kind, said)
	o.violations.add(repoID, kind, said)
	if p, ok := said.(*ledger.PolicyEvent); ok {
		if o.policies[repoID] == nil {
			o.policies[repoID] = make(map[int64]*ledger.PolicyEvent)
		}
		o.policies[repoID][int64(p.Version)] = p
	}
}

// AddRollback adds to which commit the attestation in a row has rolled back; empty for none.
func (o *Org) AddRollback(id int64, to string) { o.rollbacks[id] = to }

// AddFinished adds when the deployment of the attestation in a row finished, if its row says later.
func (o *Org) AddFinished(id int64, at ledger.Time) { o.finished[id] = at }

// had reports whether a repo has or had a name. A repoID of 0 is the org.
func (o *Org) had(repoID int64, name, wanted string) bool {
	return wanted == name || slices.Contains(o.former[repoID], wanted)
}

// readFormer reads the names that the org and its repos had.
func (o *Org) readFormer(conn *sqldb.Conn) error {
	o.former = make(map[int64][]string)
	err := conn.Each(func(row sqldb.Scanner) error {
		var repoID int64
		var name string
		err := row.Scan(&repoID, &name)
		o.former[repoID] = append(o.former[repoID], name)
		return err
	}, "SELECT repo_id, name FROM former_names WHERE org_id = ?", o.ID)
	if err != nil {
		return fmt.Errorf("read former names: %w", err)
	}
	return nil
}

// A repo is a row of the table repos.
type repo struct {
	id            int64
	name          string
	policyVersion int64
	policyDigest  string
	attestations  int64
	deleted       bool
	sends         int64 // the types of events that its webhooks get, as bits
}

// repos returns the repos of the org.
func (o *Org) repos(ctx context.Context) (list []repo, err error) {
	err = o.Read(ctx, func(conn *sqldb.Conn) (err error) {
		list, err = sqldb.All(conn, func(row sqldb.Scanner) (r repo, err error) {
			return r, row.Scan(&r.id, &r.name, &r.policyVersion, &r.policyDigest, &r.attestations, &r.deleted, &r.sends)
		}, `
SELECT id, name, policy_version, policy_digest, attestations, deleted_at > 0, webhook_events
FROM repos WHERE org_id = ? ORDER BY id`, o.ID)
		return err
	})
	return list, err
}
