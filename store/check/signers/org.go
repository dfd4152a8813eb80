// Package signers checks who may sign for the orgs of a database: their identities, trusted roots, CAs, passkeys,
// keys and people, which it compares with the events about them.
package signers

import (
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/check/report"
)

// An Org is an org, with what its events say of its signers.
type Org struct {
	*report.Database
	id     int64
	name   string
	end    int64
	logged logged
}

// New returns an org of which no event was read. end is the seq of its next event.
func New(d *report.Database, id int64, name string, end int64) *Org {
	return &Org{d, id, name, end, newLogged(end)}
}

// Add adds an event, which must be newer than those before. said is its body; nil if that cannot be trusted.
func (o *Org) Add(seq int64, kind ledger.EventType, said ledger.Event) { o.logged.add(seq, kind, said) }

// Sign adds the signature of an attestation. It must follow the events before it.
func (o *Org) Sign(dn string, key []byte, emails []string) { o.logged.addSignature(dn, key, emails) }

// Claim adds a key that has signed a commit, as a hex SHA-256.
func (o *Org) Claim(key string) { o.logged.claimed[key] = true }

// Emails returns the e-mail addresses of a signer by the events so far, and by the certificate. It reports false if
// they are not known.
func (o *Org) Emails(identity string, certified []string) (list []string, ok bool) {
	return o.logged.who.Emails(identity, certified)
}
