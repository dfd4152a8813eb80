package check

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// loggedIdentities has what the events of an org say of its identities.
type loggedIdentities struct {
	latest map[string]*ledger.IdentityEvent // by the ID of the identity
	rows   map[string]bool                  // identities that have a row
	unread int64                            // events of identities without a body that can be trusted
	end    int64                            // the seq after the last event that was read
}

func newLoggedIdentities(end int64) loggedIdentities {
	return loggedIdentities{latest: make(map[string]*ledger.IdentityEvent), rows: make(map[string]bool), end: end}
}

// add adds an event, which must be newer than those before.
func (l *loggedIdentities) add(e *event) {
	if e.kind != ledger.EventIdentity {
		return
	}
	if e.identity == nil {
		l.unread++
		return
	}
	l.latest[e.identity.IdentityID] = e.identity
}

// readOn adds the events that were recorded since the check of the events.
func (l *loggedIdentities) readOn(conn *sqldb.Conn, org int64) error {
	events, err := sqldb.All(conn, func(row sqldb.Scanner) (*event, error) {
		e := event{kind: ledger.EventIdentity}
		return &e, row.Scan(&e.seq, &e.body)
	}, `
SELECT seq, body FROM events WHERE org_id = ? AND seq >= ? AND repo_id IS NULL AND type = 'identity' ORDER BY seq`,
		org, l.end)
	if err != nil {
		return fmt.Errorf("read events of identities: %w", err)
	}
	for _, e := range events {
		var said ledger.IdentityEvent
		if json.Unmarshal(e.body, &said) == nil {
			e.identity = &said
		}
		l.add(e)
		l.end = e.seq + 1
	}
	return nil
}
