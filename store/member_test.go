package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/store/txn"
)

// An org has at most 10,000 members, including former members, and 500 rules.
func TestMembersAreLimited(t *testing.T) {
	path := NewFile(t)
	s := openAgain(t, path, Options{})
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	added := func(n int) error {
		dn := fmt.Sprintf("cn=person %d,ou=people-dev,o=acme", n)
		_, err := s.AddMember(t.Context(), "acme",
			member.NewMember{Issuer: "https://idp.example", Subject: dn, DN: dn, Role: member.Reader})
		return err
	}
	ruled := func() error {
		_, err := s.CreateMemberRule(t.Context(), "acme", member.NewRule{Issuer: "https://idp.example", Claim: "groups",
			Value: "dev", Role: member.Reader, DN: "cn={sub},ou=people-dev,o=acme"})
		return err
	}

	must.OK(t, added(1))
	must.OK(t, ruled())
	for _, insert := range []string{`
INSERT INTO members (member_id, org_id, issuer, subject, dn, folded, name, email, role, by_rule, created_at, removed_at)
SELECT 'mem_' || n.value, org_id, issuer, n.value, dn, n.value, '', '', role, 0, 1, 1
FROM members, (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 9998)
  SELECT value FROM n) n`, `
INSERT INTO member_rules (rule_id, org_id, issuer, claim, value, role, dn, created_at)
SELECT 'mrl_' || n.value, org_id, issuer, claim, r.value, role, dn, 1
FROM member_rules r, (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 498)
  SELECT value FROM n) n`} {
		_, err := readRaw(t, path).Exec(insert)
		must.OK(t, err)
	}
	must.OK(t, added(2))
	wantLimit(t, added(3))
	must.OK(t, ruled())
	wantLimit(t, ruled())
}

// The orgs that have members or rules of a provider at the migration may go on using it, and no others.
func TestMigrationListsTheOrgsOfProviders(t *testing.T) {
	path := unpack(t, "testdata/schemas/v17.db.gz")
	db := readRaw(t, path)
	for _, insert := range []string{`
INSERT INTO orgs (id, name, created_at) VALUES (11, 'ruled', 1), (12, 'peopled', 1), (13, 'former', 1),
  (14, 'new', 1)`, `
INSERT INTO member_rules (rule_id, org_id, issuer, claim, value, role, dn, created_at, removed_at) VALUES
  ('mrl_1', 11, 'https://idp.example', 'groups', 'dev', 1, 'cn={sub},ou=people-x,o=x', 1, 0),
  ('mrl_2', 11, 'https://idp.example', 'groups', 'ops', 1, 'cn={sub},ou=people-x,o=x', 1, 0),
  ('mrl_3', 13, 'https://idp.example', 'groups', 'dev', 1, 'cn={sub},ou=people-x,o=x', 1, 2)`, `
INSERT INTO members (member_id, org_id, issuer, subject, dn, folded, name, email, role, by_rule, created_at, removed_at)
VALUES ('mem_1', 12, 'https://idp.example', '1', 'cn=1,ou=people-x,o=x', '1', '', '', 1, 0, 1, 0),
  ('mem_2', 13, 'https://idp.example', '1', 'cn=1,ou=people-x,o=x', '1', '', '', 1, 0, 1, 2),
  ('mem_3', 14, 'https://other.example', '1', 'cn=1,ou=people-x,o=x', '1', '', '', 1, 0, 1, 0)`} {
		_, err := db.Exec(insert)
		must.OK(t, err)
	}
	must.OK(t, db.Close())

	s := openAgain(t, path, Options{NoCopy: true, Providers: member.Providers{"https://idp.example": nil}})
	for issuer, want := range map[string]string{
		"https://idp.example": "[peopled ruled]", "https://other.example": "[new]", "https://idp.example/": "[]",
	} {
		if got, err := s.ListedOrgs(t.Context(), issuer, 10); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s may be used by %v, %v; want %s", issuer, got, err, want)
		}
	}
	for org, want := range map[string]bool{"ruled": true, "peopled": true, "former": false, "new": false} {
		_, err := s.CreateMemberRule(t.Context(), org, member.NewRule{Issuer: "https://idp.example", Claim: "groups",
			Value: "dev", Role: member.Reader, DN: "cn={sub},ou=people-dev,o=acme"})
		if (err == nil) != want {
			t.Errorf("a rule in %s: %v", org, err)
		}
	}
	offers, err := s.Offers(t.Context(), member.Account{Issuer: "https://idp.example", Subject: "1",
		Claims: map[string][]string{"groups": {"dev"}, "sub": {"1"}}})
	must.OK(t, err)
	if len(offers) != 2 || offers[0].Org != "peopled" || offers[1].Org != "ruled" || !offers[1].Joins {
		t.Errorf("the offers are %+v", offers)
	}
}

// At most 100 orgs are offered to an account.
func TestOffersAreBounded(t *testing.T) {
	path := NewFile(t)
	s := openAgain(t, path, Options{Providers: member.Providers{"https://idp.example": {member.AnyOrg}}})
	for _, insert := range []string{`
WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 101)
INSERT INTO orgs (name, created_at) SELECT 'org' || (1000 + value), 1 FROM n`, `
INSERT INTO member_rules (rule_id, org_id, issuer, claim, value, role, dn, created_at)
SELECT 'mrl_' || id, id, 'https://idp.example', 'groups', 'dev', 1, 'cn={sub},ou=people-x,o=x', 1 FROM orgs`} {
		_, err := readRaw(t, path).Exec(insert)
		must.OK(t, err)
	}

	a := member.Account{Issuer: "https://idp.example", Subject: "1",
		Claims: map[string][]string{"groups": {"dev"}, "sub": {"1"}}}
	offers, err := s.Offers(t.Context(), a)
	must.OK(t, err)
	if len(offers) != 100 || offers[0].Org != "org1001" || offers[99].Org != "org1100" {
		t.Errorf("there are %d offers: %+v", len(offers), offers)
	}
}

// Drafts of reviews and challenges are deleted when they end, and before their sign-in.
func TestDraftsArePruned(t *testing.T) {
	now := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	s := openAgain(t, NewFile(t), Options{Now: func() time.Time { return now },
		Providers: member.Providers{"https://idp.example": {"acme"}}})
	createAcme(t, s)
	_, err := s.AddMember(t.Context(), "acme", member.NewMember{Issuer: "https://idp.example", Subject: "1",
		DN: "cn=ann,ou=people-dev,o=acme", Role: member.Reader})
	must.OK(t, err)
	_, err = s.SignInMember(t.Context(), "acme", member.Account{Issuer: "https://idp.example", Subject: "1"}, [32]byte{1},
		[32]byte{2}, s.Now())
	must.OK(t, err)
	must.OK(t, s.db.Change(t.Context(), "acme", func(t *txn.Tx) error {
		_, err := t.Exec(`
INSERT INTO review_drafts (digest, token_id, repo_id, until) SELECT x'01', t.id, r.id, ? FROM tokens t, repos r`,
			t.Now.Add(90*time.Minute))
		if err != nil {
			return err
		}
		_, err = t.Exec("INSERT INTO passkey_challenges (digest, token_id, until) SELECT x'01', t.id, ? FROM tokens t",
			t.Now.Add(150*time.Minute))
		return err
	}))

	for _, want := range []int{3, 3, 2, 0} { // after an hour, the sign-in is kept for what names it
		must.OK(t, s.Prune(t.Context()))
		n := countRows(t, s, `SELECT (SELECT count(*) FROM review_drafts) + (SELECT count(*) FROM tokens) +
  (SELECT count(*) FROM passkey_challenges)`)
		if n != want {
			t.Errorf("at %s, %d sign-ins, drafts and challenges are left, want %d", now, n, want)
		}
		now = now.Add(time.Hour)
	}
}

// A refused sign-in writes nothing, whether or not the org exists: the time that a write takes would
// reveal that.
func TestRefusedSignInsWriteNothing(t *testing.T) {
	s := openAgain(t, NewFile(t),
		Options{Providers: member.Providers{"https://idp.example": {"acme"}}})
	_, err := s.CreateOrg(t.Context(), "acme")
	must.OK(t, err)
	former, err := s.AddMember(t.Context(), "acme", member.NewMember{Issuer: "https://idp.example", Subject: "1",
		DN: "cn=ann,ou=people-dev,o=acme", Role: member.Reader})
	must.OK(t, err)
	_, err = s.ChangeMember(t.Context(), "acme", former.ID, member.Change{Removed: new(true)})
	must.OK(t, err)

	for n, test := range []struct{ org, subject string }{{"none", "1"}, {"acme", "1"}, {"acme", "2"}} {
		_, err := s.SignInMember(t.Context(), test.org, member.Account{Issuer: "https://idp.example", Subject: test.subject},
			[32]byte{byte(n)}, [32]byte{9}, s.Now().Add(time.Hour))
		if !txn.IsCode(err, ledger.CodeForbidden) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	if n := countRows(t, s, "SELECT count(*) FROM used_tokens"); n != 0 {
		t.Errorf("%d states of refused sign-ins are remembered", n)
	}
}

// A server of an earlier release that still runs after the migration reads no tokens. It would take
// those with the scope admin, which has the value 4 now, for the administrator of the host.
func TestTokensAreNotReadByEarlierReleases(t *testing.T) {
	path := NewFile(t)
	openAgain(t, path, Options{})
	if _, err := readRaw(t, path).Exec("SELECT t.name, t.scope FROM tokens t"); err == nil {
		t.Error("the query of an earlier release works")
	}
}
