package access

import (
	"fmt"
	"time"

	"golang.org/x/mod/semver"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// clientLife is how long a version of ledgerd is remembered that was the oldest to use a token.
const clientLife = 30 * 24 * time.Hour

// TouchToken sets the time at which a token was last used, and the oldest version of ledgerd that has
// used it in the last 30 days. client is such a version, or empty. It writes at most once a minute
// per token, in the background; more often only if more than maxTouched tokens are in use. If the
// writer's queue is full, it is a no-op.
func (ac *Access) TouchToken(id, client string) {
	now := ac.db.Clock.Now()
	if last, ok := ac.touched.Get(id); ok && now.Sub(last).Abs() < time.Minute {
		return
	}
	queued := ac.db.TryWrite(sqldb.Write{Independent: true, Do: func(c *sqldb.Conn) error {
		return noteUse(c, id, client, now)
	}})
	if queued {
		ac.touched.Put(id, now)
	}
}

func noteUse(c *sqldb.Conn, id, client string, now ledger.Time) error {
	_, err := c.Exec("UPDATE tokens SET last_used_at = ? WHERE token_id = ? AND last_used_at < ?", now, id, now)
	if err != nil || client == "" {
		return err
	}

	var oldest string
	var seen ledger.Time
	err = c.Row("SELECT client, client_at FROM tokens WHERE token_id = ?", id).Scan(&oldest, &seen)
	if err != nil {
		return fmt.Errorf("read the oldest client: %w", err)
	}
	if oldest != "" && semver.Compare(oldest, client) < 0 && now.Sub(seen) < clientLife {
		return nil
	}
	_, err = c.Exec("UPDATE tokens SET client = ?, client_at = ? WHERE token_id = ?", client, now, id)
	return err
}

// A TokenClient is a token with the oldest version of ledgerd that uses it.
type TokenClient struct {
	Org, Token string
	Version    string
}

// OldClients returns the tokens that an earlier version of ledgerd than the given one has used in
// the last 30 days, and the first of them.
func OldClients(rd txn.Reader, version string, limit int) (old []TokenClient, err error) {
	err = rd.Each(func(row txn.Scanner) error {
		var c TokenClient
		err := row.Scan(&c.Org, &c.Token, &c.Version)
		if err == nil && len(old) < limit && semver.Compare(c.Version, version) < 0 {
			old = append(old, c)
		}
		return err
	}, `
SELECT o.name, t.name, t.client FROM tokens t JOIN orgs o ON o.id = t.org_id
WHERE t.client <> '' AND t.client_at > ? AND t.revoked_at = 0 AND (t.expires_at = 0 OR t.expires_at > ?)
  AND o.deleted_at = 0 ORDER BY t.id`, rd.Now.Add(-clientLife), rd.Now)
	if err != nil {
		return nil, fmt.Errorf("read the clients of tokens: %w", err)
	}
	return old, nil
}
