package check

import (
	"crypto/sha256"
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

// maxKnown limits the commits of an org whose facts are compared with their events. An entry
// takes about 100 bytes.
const maxKnown = 1_000_000

// A shortDigest is the first half of a SHA-256, which says enough of what nobody can choose
// freely, in half the memory.
type shortDigest [sha256.Size / 2]byte

func shorten(text string) (d shortDigest) {
	sum := sha256.Sum256([]byte(text))
	copy(d[:], sum[:])
	return d
}

// loggedFacts has what the latest events of an org say of its commits.
type loggedFacts struct {
	latest map[shortDigest]shortDigest // digests of the facts by commits
	unread int64                       // events without a body that can be trusted
	limit  int                         // of commits
	left   int64                       // events of commits beyond the limit
	// unlogged are commits that differ, while the server logs those from before an upgrade.
	unlogged int64
}

func commitKey(repo int64, sha string) shortDigest { return shorten(fmt.Sprintf("%d@%s", repo, sha)) }

// add adds an event, which must be newer than those before.
func (l *loggedFacts) add(e *event) {
	if e.kind != ledger.EventCommit {
		return
	}
	if e.known == nil || e.known.Facts == "" {
		l.unread++
		return
	}
	key := commitKey(e.repoID, e.known.Commit)
	if _, ok := l.latest[key]; !ok && len(l.latest) >= l.limit {
		l.left++
		return
	}
	l.latest[key] = shorten(e.known.Facts)
}
