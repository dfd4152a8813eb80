package signers

import (
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/check/report"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// logged is what the events of an org say of its identities, passkeys and CAs.
type logged struct {
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

func newLogged(end int64) logged {
	return logged{
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

// add adds an event, which must be newer than those before, with what it says.
func (l *logged) add(seq int64, kind ledger.EventType, said ledger.Event) {
	switch said := said.(type) {
	case *ledger.IdentityEvent:
		l.addIdentity(said)
	case *ledger.KeyEvent:
		switch said.Purpose {
		case ledger.KeyOfCA:
			l.authorities[said.Key] = said
		case ledger.KeyOfReceipts:
			l.receipts[said.ID] = receiptKey{seq, said.Key, string(said.PublicKey), said.NotBefore, said.NotAfter}
		}
	default:
		if kind == ledger.EventIdentity || kind == ledger.EventKey {
			l.unread++
		}
	}
}

func (l *logged) addIdentity(said *ledger.IdentityEvent) {
	switch said.Kind {
	case ledger.KindTrustedRoot:
		l.versions[rootVersion{said.IdentityID, said.Version}] = said
		return
	case ledger.KindPasskey:
		l.passkeys[said.IdentityID] = said
		return
	case ledger.KindSigner:
		l.signers[said.DN] = said
	default:
		l.latest[said.IdentityID] = said
	}
	l.trust(said)
}

// trust adds who signs with an identity.
func (l *logged) trust(said *ledger.IdentityEvent) {
	_ = l.who.Trust(*said) // one that cannot be read names nobody
}

// readOn adds the events that were recorded since the check of the events.
func (l *logged) readOn(conn *sqldb.Conn, org int64) error {
	err := conn.Each(func(row sqldb.Scanner) error {
		var seq int64
		var kind ledger.EventType
		var body []byte
		if err := row.Scan(&seq, &kind, &body); err != nil {
			return err
		}
		l.add(seq, kind, report.ReadEvent(kind, body))
		l.end = seq + 1
		return nil
	}, `
SELECT seq, type, body FROM events
WHERE org_id = ? AND seq >= ? AND repo_id IS NULL AND type IN ('identity', 'key') ORDER BY seq`, org, l.end)
	if err != nil {
		return fmt.Errorf("read events of identities: %w", err)
	}
	return nil
}

func (l *logged) addSignature(name string, key []byte, emails []string) {
	if dn, err := identity.ParseDN(name); err == nil { // else the check of the row reports it
		l.who.Sign(dn, hex.EncodeToString(key))
		l.who.Name(dn, emails...)
	}
}

// readSignatures adds the attestations that were recorded since the check of the events.
func (l *logged) readSignatures(conn *sqldb.Conn, org, end int64) error {
	err := conn.Each(func(row sqldb.Scanner) error {
		var dn, emails string
		var key []byte
		err := row.Scan(&dn, &key, &emails)
		l.addSignature(dn, key, sqldb.Lines(emails))
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
