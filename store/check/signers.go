package check

import (
	"context"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// toBeLogged is the value of the column distinct_by of signers whom the server logs at its next
// start.
const toBeLogged = 3

// A signerRow is a row of the table signers, with its names.
type signerRow struct {
	id, individual, distinctBy int64
	dn                         string
	identity.NamedSigner
}

// signers checks that the signers of an org are distinct as the latest events about them say, and
// that those with a common name are one individual.
func (c *checker) signers(ctx context.Context, o *org) error {
	var rows []signerRow
	err := c.read(ctx, func(conn *sqldb.Conn) (err error) {
		if rows, err = signersOf(conn, o.id); err != nil {
			return err
		}
		return o.identities.readOn(conn, o.id)
	})
	if err != nil {
		return fmt.Errorf("read signers: %w", err)
	}

	named := make([]identity.NamedSigner, len(rows))
	for i, r := range rows {
		named[i] = r.NamedSigner
		said := o.identities.signers[r.dn]
		if isLogged := said != nil && said.Distinct; isLogged != r.Distinct && r.distinctBy != toBeLogged &&
			o.identities.unread == 0 {
			c.problemf("signer", o.name, "signer "+r.dn, "the row says that it is distinct: %t, and the events: %t",
				r.Distinct, isLogged)
		}
	}
	individuals := identity.Individuals(named)
	for _, r := range rows {
		if want := individuals[r.Person]; r.individual != want {
			c.problemf("signer", o.name, "signer "+r.dn, "it counts as the individual %d, and by its names it is %d",
				r.individual, want)
		}
	}
	return nil
}

// signersOf reads the signers of an org who have signed or were registered.
func signersOf(conn *sqldb.Conn, org int64) ([]signerRow, error) {
	rows, err := sqldb.All(conn, func(row sqldb.Scanner) (r signerRow, err error) {
		err = row.Scan(&r.id, &r.dn, &r.Person, &r.individual, &r.distinctBy)
		r.Distinct = r.distinctBy > 0
		return r, err
	}, "SELECT id, dn, person, individual, distinct_by FROM signers WHERE org_id = ? AND person > 0 ORDER BY id", org)
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
