package signers

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

const insertSignerName = "INSERT INTO signer_names (org_id, name, signer_id) VALUES (?, ?, ?) " +
	"ON CONFLICT (org_id, name, signer_id) DO NOTHING"

// MaxNamed is the maximum number of signers that are stored for a name. Others with this
// name are still compared with authors by it, but not the other names of their people.
const MaxNamed = 1000

// nameSigner stores the names of a signer: the CN, and e-mail addresses and logins, one per
// line. If they are new names of a person who is already known, who then may be the author of
// commits, if they make people one individual, or if a contract needs to know authors, the commits
// of the org are derived again, and changed is true.
func (sg *Signers) nameSigner(t *txn.Tx,
	orgID, signerID, person int64, cn, names string, cause ledger.Cause,
) (changed bool, err error) {
	isNew, added := false, []string(nil)
	for i, name := range append([]string{cn}, strings.Split(names, "\n")...) {
		if name = identity.FoldName(name); name == "" {
			continue
		}
		n, err := AddSignerName(t.Conn, orgID, signerID, name)
		if err != nil {
			return false, err
		}
		isNew = isNew || i == 0 && n > 0
		if n > 0 {
			added = append(added, name)
		}
	}

	// A person has the row id of the first signer. A new one has signed nothing else.
	newSigner := int64(0)
	if isNew && person == signerID {
		newSigner = signerID
	}
	shares, err := sharesName(t, orgID, person, added)
	if err == nil && shares {
		changed, err = sg.regroup(t, orgID, newSigner)
	}
	if err != nil || len(added) == 0 {
		return false, err
	}
	if newSigner != 0 && !changed {
		if needed, err := sg.needsKnownAuthors(t, orgID); err != nil || !needed {
			return false, err
		}
	}
	return true, sg.jobs.SettleOrg(t, orgID, cause)
}

// needsKnownAuthors reports whether the contract of any repo of an org needs to know authors.
func (sg *Signers) needsKnownAuthors(t *txn.Tx, orgID int64) (bool, error) {
	repos, err := txn.All(t.Reader, txn.ScanID,
		"SELECT min(id) FROM repos WHERE org_id = ? AND deleted_at = 0 GROUP BY policy_digest", orgID)
	if err != nil {
		return false, fmt.Errorf("read the contracts of an org: %w", err)
	}
	for _, id := range repos {
		r, err := t.RepoByID(id)
		if err != nil {
			return false, err
		}
		contract, err := sg.policies.Contract(t.Reader, r)
		if err != nil || contract.NeedsKnownAuthors() {
			return err == nil, err
		}
	}
	return false, nil
}

// forgetNames deletes folded names of a signer, and has the commits of the org derived again.
func (sg *Signers) forgetNames(t *txn.Tx, orgID int64, dn string, names []string, cause ledger.Cause) error {
	if len(names) == 0 {
		return nil
	}
	signerID, err := sg.RowOf(t.Reader, NameKey{signersTable, orgID, dn})
	if err != nil {
		return err
	}
	for _, name := range names {
		_, err := t.Exec("DELETE FROM signer_names WHERE org_id = ? AND name = ? AND signer_id = ?", orgID, name, signerID)
		if err != nil {
			return fmt.Errorf("delete a name of a signer: %w", err)
		}
	}
	if _, err := sg.regroup(t, orgID, 0); err != nil {
		return err
	}
	return sg.jobs.SettleOrg(t, orgID, cause)
}

// AddSignerName stores a folded name of a signer, and returns the number of new rows: 0 if
// it is known, or if MaxNamed signers have it.
func AddSignerName(c *sqldb.Conn, orgID, signerID int64, name string) (added int64, err error) {
	var last int64
	err = c.Row("SELECT signer_id FROM signer_names WHERE org_id = ? AND name = ? ORDER BY signer_id LIMIT 1 OFFSET ?",
		orgID, name, MaxNamed-1).Scan(&last)
	if errors.Is(err, sql.ErrNoRows) { // there are fewer
		added, err = c.Exec(insertSignerName, orgID, name, signerID)
	}
	if err != nil {
		return 0, fmt.Errorf("name a signer: %w", err)
	}
	return added, nil
}
