package signers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// Why signers are distinct: the column distinct_by. The server logs the last at its next start.
const (
	distinctByAdmin   = 1
	distinctByUpgrade = 2
	toBeLogged        = 3
)

// A signerRow is a row of the table signers, with its names.
type signerRow struct {
	id, individual, distinctBy int64
	dn, cn, folded             string
	identity.NamedSigner
}

// A keyRow is a row of the table keys.
type keyRow struct {
	digest    []byte
	person    int64
	isClaimed bool
}

// signers derives again who the signers of an org are: which of them, and which keys, are one person
// or individual, and what names they have.
func (o *Org) signers(ctx context.Context) error {
	err := o.Read(ctx, func(conn *sqldb.Conn) error {
		rows, err := signersOf(conn, o.id)
		if err != nil {
			return err
		}
		if err := o.logged.readOn(conn, o.id); err != nil {
			return err
		}
		if err := o.logged.readSignatures(conn, o.id, o.end); err != nil {
			return err
		}

		o.individuals(rows)
		if o.logged.unread > 0 {
			return nil
		}
		o.names(rows)
		p := people{Org: o, stored: make(map[int64]int64), derived: make(map[int64]int64)}
		p.compareSigners(rows)
		return conn.Each(func(row sqldb.Scanner) error {
			k, err := scanKey(row)
			if err == nil {
				p.compareKey(k)
			}
			return err
		}, selectKeys, o.id)
	})
	if err != nil {
		return fmt.Errorf("read signers: %w", err)
	}
	return nil
}

// individuals checks the rows of signers, and that those with a common name are one individual.
func (o *Org) individuals(rows []signerRow) {
	named := make([]identity.NamedSigner, len(rows))
	for i, r := range rows {
		named[i] = r.NamedSigner
		o.signer(r)
	}
	individuals := identity.Individuals(named)
	for _, r := range rows {
		if want := individuals[r.Person]; r.individual != want {
			o.Problemf("signer", o.name, "signer "+r.dn, "it counts as the individual %d, and by its names it is %d",
				r.individual, want)
		}
	}
}

// signer checks the row of a signer.
func (o *Org) signer(r signerRow) {
	dn, err := identity.ParseDN(r.dn)
	if err != nil {
		o.Problemf("signer", o.name, "signer "+r.dn, "its DN is not valid: %v", err)
		return
	}
	if r.cn != dn.CN || r.folded != dn.Fold() {
		o.Problemf("signer", o.name, "signer "+r.dn, "the row has the name %q and, folded, %q, and the DN %q and %q", r.cn,
			r.folded, dn.CN, dn.Fold())
	}

	want, said := int64(0), o.logged.signers[r.dn]
	switch {
	case said == nil || !said.Distinct:
	case said.Action == ledger.IdentityKnown:
		want = distinctByUpgrade
	default:
		want = distinctByAdmin
	}
	switch {
	case r.distinctBy == want || o.logged.unread > 0:
	case r.distinctBy == toBeLogged:
		o.Uncheckedf("%s: signer %s is distinct by no event: the server logs it at its next start", o.name, r.dn)
	default:
		o.Problemf("signer", o.name, "signer "+r.dn, "the row says that it is distinct: %t, and the events: %t (%d and %d)",
			r.Distinct, want > 0, r.distinctBy, want)
	}
}

// people compares the people of an org with those that identities and signatures make one.
type people struct {
	*Org
	stored, derived map[int64]int64 // people, each by the other
}

func (p *people) compare(row string, person, want int64) {
	other, isKnown := p.stored[want]
	switch before, isTaken := p.derived[person]; {
	case isKnown && other != person:
		p.Problemf("signer", p.name, row, "it counts as the person %d, and by its keys and names it is %d", person, other)
	case isTaken && before != want || person == 0:
		p.Problemf("signer", p.name, row, "it counts as the person %d, and by its keys and names it is another", person)
	default:
		p.stored[want], p.derived[person] = person, want
	}
}

func (p *people) compareSigners(rows []signerRow) {
	isFirst := make(map[int64]bool) // people
	for _, r := range rows {
		isFirst[r.id] = r.id == r.Person
		if dn, err := identity.ParseDN(r.dn); err == nil {
			p.compare("signer "+r.dn, r.Person, p.logged.who.Person(dn))
		}
	}
	for _, r := range rows {
		if !isFirst[r.Person] {
			p.Problemf("signer", p.name, "signer "+r.dn, "it counts as the person %d, which is not a signer who does",
				r.Person)
		}
	}
}

func (p *people) compareKey(k keyRow) {
	row := fmt.Sprintf("key %x", k.digest)
	want, ok := int64(0), len(k.digest) == sha256.Size
	if ok {
		want, ok = p.logged.who.PersonOfKey([sha256.Size]byte(k.digest))
	}
	switch {
	case ok:
		p.compare(row, k.person, want)
	case k.person != 0:
		p.Problemf("signer", p.name, row, "it counts as the person %d, and nobody has used it", k.person)
	}
}

// names compares the names of the signers of an org with those that identities and signatures give them.
func (o *Org) names(rows []signerRow) {
	type name struct{ dn, name string }
	stored, have := make(map[name]bool), make(map[string]int)
	for _, r := range rows {
		for _, n := range r.Names {
			stored[name{r.dn, n}] = true
			have[n]++
		}
		if dn, err := identity.ParseDN(r.dn); err == nil {
			o.logged.who.Name(dn) // an administrator may have asked for one who has not signed
		}
	}

	for text, dn := range o.logged.who.Names() {
		n := name{dn.String(), text}
		if !stored[n] && have[text] < store.MaxNamed {
			o.Problemf("signer", o.name, "signer "+n.dn, "it has the name %q, which is not stored", text)
		}
		delete(stored, n)
	}
	for _, n := range slices.SortedFunc(maps.Keys(stored), func(a, b name) int {
		return cmp.Or(strings.Compare(a.dn, b.dn), strings.Compare(a.name, b.name))
	}) {
		o.Problemf("signer", o.name, "signer "+n.dn, "the name %q is stored, which it does not have", n.name)
	}
}

// CheckClaims checks that the keys that have signed commits are stored as such. Others may have been
// claimed before an object said otherwise.
func (o *Org) CheckClaims(ctx context.Context) error {
	err := o.Read(ctx, func(conn *sqldb.Conn) error {
		return conn.Each(func(row sqldb.Scanner) error {
			k, err := scanKey(row)
			if k.isClaimed {
				delete(o.logged.claimed, hex.EncodeToString(k.digest))
			}
			return err
		}, selectKeys, o.id)
	})
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	for _, digest := range slices.Sorted(maps.Keys(o.logged.claimed)) {
		o.Problemf("signer", o.name, "key "+digest, "it has signed a commit, and no row says so")
	}
	return nil
}

// signersOf reads the signers of an org.
func signersOf(conn *sqldb.Conn, org int64) ([]signerRow, error) {
	rows, err := sqldb.All(conn, func(row sqldb.Scanner) (r signerRow, err error) {
		err = row.Scan(&r.id, &r.dn, &r.cn, &r.folded, &r.Person, &r.individual, &r.distinctBy)
		r.Distinct = r.distinctBy > 0
		return r, err
	}, "SELECT id, dn, cn, folded, person, individual, distinct_by FROM signers WHERE org_id = ? ORDER BY id", org)
	if err != nil {
		return nil, err
	}

	places := make(map[int64]*signerRow, len(rows))
	for i := range rows {
		places[rows[i].id] = &rows[i]
	}
	return rows, conn.Each(func(row sqldb.Scanner) error {
		var id int64
		var name string
		err := row.Scan(&id, &name)
		if r := places[id]; r != nil {
			r.Names = append(r.Names, name)
		}
		return err
	}, "SELECT signer_id, name FROM signer_names WHERE org_id = ?", org)
}

const selectKeys = "SELECT digest, person, claimed FROM keys WHERE org_id = ? ORDER BY id"

func scanKey(row sqldb.Scanner) (k keyRow, err error) {
	return k, row.Scan(&k.digest, &k.person, &k.isClaimed)
}
