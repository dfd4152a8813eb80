package store

import (
	"errors"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/exchange"
	"github.com/ledgerd/ledgerd/store/access"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A rule has at most 1,000 tokens that are valid, and an org at most 1,000 rules.
func TestTokensOfARuleAreLimited(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	path := NewFile(t)
	s, err := Open(t.Context(), path, Options{Now: func() time.Time { return now }})
	must.OK(t, err)
	defer s.Close()
	createAcme(t, s)
	_, err = s.AddIssuer(t.Context(), "acme", exchange.NewIssuer{URL: "https://gitlab.com"})
	must.OK(t, err)
	n, err := exchange.NewRule{Name: "ci", Issuer: "https://gitlab.com", ProjectID: "1", Scope: ledger.Read,
		Repos: []string{"api"}}.Completed()
	must.OK(t, err)
	rule, err := s.CreateRule(t.Context(), "acme", n)
	must.OK(t, err)

	hashes := byte(0)
	exchanged := func() error {
		hashes++
		_, err := s.Exchange(t.Context(), "acme", access.Exchange{Rule: rule, Scope: ledger.Read}, [32]byte{hashes})
		return err
	}
	must.OK(t, exchanged())
	_, err = readRaw(t, path).Exec(`
INSERT INTO tokens (token_id, org_id, name, permission, hash, created_at, expires_at, rule_id)
SELECT 'tok_' || n.value, t.org_id, t.name, t.permission, CAST('hash ' || n.value AS BLOB), t.created_at, t.expires_at,
  t.rule_id
FROM tokens t, (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 998)
  SELECT value FROM n) n`)
	must.OK(t, err)
	must.OK(t, exchanged())
	wantLimit(t, exchanged())
	now = now.Add(15 * time.Minute)
	must.OK(t, exchanged())

	_, err = readRaw(t, path).Exec(`
INSERT INTO exchange_rules (rule_id, org_id, issuer_id, subject, dn, rule, created_at)
SELECT 'rul_' || n.value, x.org_id, x.issuer_id, n.value + 1, x.dn, x.rule, x.created_at
FROM exchange_rules x, (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 998)
  SELECT value FROM n) n`)
	must.OK(t, err)
	n.ProjectID = "5000"
	_, err = s.CreateRule(t.Context(), "acme", n)
	must.OK(t, err)
	_, err = s.CreateRule(t.Context(), "acme", n)
	wantLimit(t, err)
}

// Used tokens are kept for an hour after they expired.
func TestUsedTokensArePruned(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	s := openAgain(t, NewFile(t), Options{Now: func() time.Time { return now }})
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	must.OK(t, s.db.Change(t.Context(), "acme", func(t *txn.Tx) error {
		_, err := t.Exec("INSERT INTO used_tokens (org_id, digest, until) SELECT id, x'01', ? FROM orgs",
			t.Now.Add(time.Minute))
		return err
	}))

	for _, want := range []int{1, 0} {
		now = now.Add((time.Hour + time.Minute) / 2)
		must.OK(t, s.Prune(t.Context()))
		if n := countRows(t, s, "SELECT count(*) FROM used_tokens"); n != want {
			t.Errorf("at %s, %d used tokens are remembered, want %d", now, n, want)
		}
	}
}

func wantLimit(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*ledger.Error](err); !ok || e.Code != ledger.CodeLimitReached {
		t.Errorf("got %v, want the code limit_reached", err)
	}
}
