package check

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/settings"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// loggedIdentities has what the events of an org say of its identities, passkeys and CAs.
type loggedIdentities struct {
	latest map[string]*ledger.IdentityEvent // by the ID of the identity
	// versions are the events about trusted roots, by name and version.
	versions map[rootVersion]*ledger.IdentityEvent
	passkeys map[string]*ledger.IdentityEvent // the latest about each, by its ID
	signers  map[string]*ledger.IdentityEvent // the latest about each, by its DN
	// receipts are the events about keys of receipts, by their own IDs.
	receipts map[string]receiptKey
	// authorities are the latest events about CAs, by the digest of the certificate in hex.
	authorities map[string]*ledger.KeyEvent
	rows        map[string]bool // identities that have a row
	unread      int64           // events of identities and keys without a body that can be trusted
	end         int64           // the seq after the last event that was read
	// who are those who have signed or were registered, and claimed the keys that sign commits, as hex
	// SHA-256.
	who     *identity.Signers
	claimed map[string]bool
}

func newLoggedIdentities(end int64) loggedIdentities {
	return loggedIdentities{
		latest: make(map[string]*ledger.IdentityEvent), versions: make(map[rootVersion]*ledger.IdentityEvent),
		passkeys: make(map[string]*ledger.IdentityEvent), signers: make(map[string]*ledger.IdentityEvent),
		receipts: make(map[string]receiptKey), authorities: make(map[string]*ledger.KeyEvent),
		rows: make(map[string]bool), end: end,
		who: identity.NewSigners(), claimed: make(map[string]bool),
	}
}

// A rootVersion is a version of a trusted root.
type rootVersion struct {
	name    string
	version int
}

// A receiptKey is what an event, or a row, says of a key of receipts.
type receiptKey struct {
	seq                 int64 // of the event
	key, public         string
	notBefore, notAfter ledger.Time
}

// add adds an event, which must be newer than those before.
func (l *loggedIdentities) add(e *event) {
	l.addSigner(e)
	switch said := e.said.(type) {
	case *ledger.IdentityEvent:
		l.addIdentity(said)
	case *ledger.KeyEvent:
		switch said.Purpose {
		case ledger.KeyOfCA:
			l.authorities[said.Key] = said
		case ledger.KeyOfReceipts:
			l.receipts[said.ID] = receiptKey{e.seq, said.Key, string(said.PublicKey), said.NotBefore, said.NotAfter}
		}
	default:
		if e.kind == ledger.EventIdentity || e.kind == ledger.EventKey {
			l.unread++
		}
	}
}

func (l *loggedIdentities) addIdentity(said *ledger.IdentityEvent) {
	switch said.Kind {
	case ledger.KindTrustedRoot:
		l.versions[rootVersion{said.IdentityID, said.Version}] = said
	case ledger.KindPasskey:
		l.passkeys[said.IdentityID] = said
	case ledger.KindSigner:
		l.signers[said.DN] = said
	default:
		l.latest[said.IdentityID] = said
	}
}

// readOn adds the events that were recorded since the check of the events.
func (l *loggedIdentities) readOn(conn *sqldb.Conn, org int64) error {
	events, err := sqldb.All(conn, func(row sqldb.Scanner) (*event, error) {
		var e event
		return &e, row.Scan(&e.seq, &e.kind, &e.body)
	}, `
SELECT seq, type, body FROM events
WHERE org_id = ? AND seq >= ? AND repo_id IS NULL AND type IN ('identity', 'key') ORDER BY seq`, org, l.end)
	if err != nil {
		return fmt.Errorf("read events of identities: %w", err)
	}
	for _, e := range events {
		e.read()
		l.add(e)
		l.end = e.seq + 1
	}
	return nil
}

// addSigner adds what an event says of who signs.
func (l *loggedIdentities) addSigner(e *event) {
	if i, ok := e.said.(*ledger.IdentityEvent); ok && i.Kind != ledger.KindTrustedRoot && i.Kind != ledger.KindPasskey {
		_ = l.who.Trust(*i) // one that cannot be read names nobody
	}
	if a := e.evidence; a != nil {
		l.addSignature(a.dn, a.key, a.emails)
	}
}

func (l *loggedIdentities) addSignature(name string, key []byte, emails []string) {
	if dn, err := identity.ParseDN(name); err == nil { // else the check of the row reports it
		l.who.Sign(dn, hex.EncodeToString(key))
		l.who.Name(dn, emails...)
	}
}

// readSignatures adds the attestations that were recorded since the check of the events.
func (l *loggedIdentities) readSignatures(conn *sqldb.Conn, org, end int64) error {
	err := conn.Each(func(row sqldb.Scanner) error {
		var dn, emails string
		var key []byte
		err := row.Scan(&dn, &key, &emails)
		l.addSignature(dn, key, linesOf(emails))
		return err
	}, `
SELECT s.dn, k.digest, a.emails
FROM events e
  /*+ordered*/ JOIN attestations a ON a.repo_id = e.repo_id AND a.recorded_at = e.at AND a.event_id = e.event_id
  /*+ordered*/ JOIN signers s ON s.id = a.signer_id /*+ordered*/ JOIN keys k ON k.id = a.key_id
WHERE e.org_id = ? AND e.seq >= ? AND e.type = 'attestation' ORDER BY e.seq`, org, end)
	if err != nil {
		return fmt.Errorf("read signatures: %w", err)
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
	said, ok := e.said.(*ledger.CommitEvent)
	if !ok || said.Facts == "" {
		l.unread++
		return
	}
	key := commitKey(e.repoID, said.Commit)
	if _, ok := l.latest[key]; !ok && len(l.latest) >= l.limit {
		l.left++
		return
	}
	l.latest[key] = shorten(said.Facts)
}

// loggedSettings has what the audit events of an org say of access and settings.
type loggedSettings struct {
	replay *settings.Replay
	unread int64 // events without a body that can be trusted
	end    int64 // the seq after the last event that was read
}

func newLoggedSettings(end int64) loggedSettings {
	return loggedSettings{replay: settings.NewReplay(ledger.TimeOf(time.Now()), settings.MaxBytes), end: end}
}

// add adds an event, which must be newer than those before. It returns what is wrong with it.
func (l *loggedSettings) add(e *event) (problem string) {
	if e.kind != ledger.EventAudit {
		return ""
	}
	said, ok := e.said.(*ledger.AuditEvent)
	if !ok {
		l.unread++
		return ""
	}
	return l.replay.Add(e.seq, said)
}
