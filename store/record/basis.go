package record

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An expectation is what the recorder expects of a repo before the write says what is true.
type expectation struct {
	contract *policy.Contract // with expressions; nil if none is expected
	webURL   string
}

// expect changes what is expected of a repo.
func (re *Recorder) expect(key string, change func(*expectation)) {
	x, _ := re.expected.Get(key)
	change(&x)
	re.expected.Put(key, x)
}

// A basis is the keyring and the web URL with which an attestation was verified.
type basis struct {
	keyring *identity.Keyring
	version int64 // of the keyring
	webURL  string
}

func (b basis) place() attestation.Place { return attestation.Place{WebURL: b.webURL} }

// present reads the keyring of an org, and the web URL of a repo: empty if there is no such repo.
func (re *Recorder) present(ctx context.Context, org, repo string) (by basis, err error) {
	if by.keyring, by.version, err = re.signers.Keyring(ctx, org); err != nil {
		return by, err
	}
	by.webURL, err = txn.ReadLoose(ctx, re.db, txn.ForWrite(org), func(rd txn.Reader) (webURL string, err error) {
		err = rd.Row("SELECT r.web_url FROM orgs o JOIN repos r ON r.org_id = o.id WHERE o.name = ? AND r.name = ?", org,
			repo).Scan(&webURL)
		if errors.Is(err, sql.ErrNoRows) { // as the write says
			return "", nil
		}
		return webURL, err
	})
	if x, _ := re.expected.Get(repoKey(org, repo)); err == nil && x.webURL != by.webURL {
		re.expect(repoKey(org, repo), func(x *expectation) { x.webURL = by.webURL })
	}
	return by, err
}

// repoKey returns the key of a repo in a view, and of what is expected of it. Like the database, it ignores the case
// of ASCII letters in the repo's name.
func repoKey(org, repo string) string {
	return org + "/" + strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, repo)
}
