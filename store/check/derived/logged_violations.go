package derived

import (
	"cmp"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A correctedField is a row of the table corrections.
type correctedField struct {
	repoID int64
	commit string
	at     ledger.Time
	ledger.CorrectedField
}

// loggedViolations has what the events of an org say of violations, and of corrections of commits.
type loggedViolations struct {
	// opened has digests of the events, and closed what has closed the violation and when, by the
	// attestation of the deployment.
	opened    map[string]shortDigest
	closed    map[string]closedViolation
	unread    int64
	corrected map[correctedField]int
	known     ledger.Time // when a commit was logged first; 0 if none was
}

func newLoggedViolations() loggedViolations {
	return loggedViolations{
		opened: make(map[string]shortDigest), closed: make(map[string]closedViolation),
		corrected: make(map[correctedField]int),
	}
}

// A closedViolation is what an event says of the end of a violation.
type closedViolation struct {
	ledger.Closing
	at ledger.Time
}

// opening returns the digest of what an event says of a new violation.
func opening(repo int64, v *ledger.ViolationEvent) shortDigest {
	return shorten(fmt.Sprintf("%d %s %s %d %d %q", repo, v.Commit, v.Predicate, v.State, v.Timestamp, v.Missing))
}

// add adds an event, which must be newer than those before.
func (l *loggedViolations) add(repoID int64, kind ledger.EventType, said ledger.Event) {
	switch said := said.(type) {
	case *ledger.ViolationEvent:
		if said.Status == ledger.ViolationOpened {
			l.opened[said.Attestation] = opening(repoID, said)
		} else if said.ClosedBy != nil {
			l.closed[said.Attestation] = closedViolation{*said.ClosedBy, said.Timestamp}
		}
	case *ledger.CommitEvent:
		l.known = cmp.Or(l.known, said.Timestamp)
		for _, field := range said.Corrected {
			l.corrected[correctedField{repoID, said.Commit, said.Timestamp, field}]++
		}
	default:
		if kind == ledger.EventViolation {
			l.unread++
		}
	}
}

// readOn adds the events since the check of the events.
func (l *loggedViolations) readOn(conn *sqldb.Conn, org, end int64) error {
	err := conn.Each(func(row sqldb.Scanner) error {
		var kind ledger.EventType
		var repoID int64
		var body []byte
		if err := row.Scan(&kind, &repoID, &body); err != nil {
			return err
		}
		l.add(repoID, kind, report.ReadEvent(kind, body))
		return nil
	}, `
SELECT type, repo_id, body FROM events WHERE org_id = ? AND seq >= ? AND type IN ('violation', 'commit') ORDER BY seq`,
		org, end)
	if err != nil {
		return fmt.Errorf("read events of violations: %w", err)
	}
	return nil
}
