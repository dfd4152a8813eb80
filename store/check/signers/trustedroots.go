package signers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// trustedRoots checks that the versions of an org's trusted roots are those that its events have.
func (o *Org) trustedRoots(ctx context.Context) error {
	var list []identity.TrustedRoot
	err := o.Read(ctx, func(conn *sqldb.Conn) (err error) {
		list, err = sqldb.All(conn, scanTrustedRoot, selectTrustedRoot+"WHERE org_id = ? ORDER BY name, version", o.id)
		if err != nil {
			return err
		}
		return o.logged.readOn(conn, o.id)
	})
	if err != nil {
		return err
	}

	logged := o.logged.versions
	rows := make(map[rootVersion]bool)
	for _, r := range list {
		rows[rootVersion{r.Name, r.Version}] = true
		o.trustedRoot(r)
	}
	var missing []rootVersion
	for version := range logged {
		if !rows[version] {
			missing = append(missing, version)
		}
	}
	slices.SortFunc(missing, func(a, b rootVersion) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	for _, v := range missing {
		o.Problemf(verify.CheckIdentity, o.name, v.String(), "there is the event %s about it, and no row", logged[v].ID)
	}
	return nil
}

func (v rootVersion) String() string { return fmt.Sprintf("version %d of %s", v.version, v.name) }

// trustedRoot compares the row of a version of a trusted root with its document and its event.
func (o *Org) trustedRoot(r identity.TrustedRoot) {
	version := rootVersion{r.Name, r.Version}
	digest := sha256.Sum256([]byte(r.Document))
	if got := hex.EncodeToString(digest[:]); got != r.Digest {
		o.Problemf(verify.CheckIdentity, o.name, version.String(), "its document has the digest %s, and the row %s", got,
			r.Digest)
	}
	said := o.logged.versions[version]
	switch {
	case said == nil && o.logged.unread > 0: // perhaps one of those
	case said == nil:
		o.Problemf(verify.CheckIdentity, o.name, version.String(), "there is no event about it, and the row has %q", r.Event)
	case said.ID != r.Event:
		o.Problemf(verify.CheckIdentity, o.name, version.String(), "the row has the event %q, and the event about it is %q",
			r.Event, said.ID)
	default:
		o.Failed(o.name, version.String(), verify.LoggedTrustedRoot(r, said))
	}
}
