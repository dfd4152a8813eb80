package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/signers"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A commit of the release before keeps its one target, and its contract's meaning: the
// default branch does not count in addition. So its state stays the same.
func TestTargetOfThePreviousRelease(t *testing.T) {
	path, now := UnpackV5(t), WhenV5(t)
	const login = "ca9cf449d836c5027b751fa7cd621b796c79de38"
	db := readRaw(t, path)
	for _, statement := range []string{
		"UPDATE commits SET target = 'release/1' WHERE sha = '" + login + "'",
		`UPDATE policies SET contract = cast(replace(contract,
  '"paths":["web/**"],"branches":[]', '"paths":[],"branches":["main"]') AS BLOB)`,
	} {
		_, err := db.Exec(statement)
		must.OK(t, err)
	}
	must.OK(t, db.Close())

	s, err := Open(t.Context(), path, Options{NoCopy: true, Now: func() time.Time { return now }})
	must.OK(t, err)
	defer s.Close()
	must.OK(t, s.Settle(t.Context()))
	_, _, err = s.Register(t.Context(), "acme", "api", login, ledger.Registration{Message: "Derive it again"})
	must.OK(t, err)
	c, err := s.Commit(t.Context(), "acme", "api", login)
	must.OK(t, err)
	if c.State != ledger.Promotable || !slices.Equal(c.Targets, []string{"release/1"}) || c.Requirements[2].Applies {
		t.Errorf("%s, targets %q, requirements %+v", c.State, c.Targets, c.Requirements)
	}
	p, err := s.Policy(t.Context(), "acme", "api", 0)
	must.OK(t, err)
	if p.Targets != policy.ClaimedTargets {
		t.Errorf("targets: %s, want claimed", p.Targets)
	}

	// A second target is added to the first.
	_, _, err = s.Register(t.Context(), "acme", "api", login, ledger.Registration{Target: "main"})
	must.OK(t, err)
	c, err = s.Commit(t.Context(), "acme", "api", login)
	must.OK(t, err)
	if c.State != ledger.Attested || !slices.Equal(c.Targets, []string{"release/1", "main"}) {
		t.Errorf("with another target: %s, targets %q", c.State, c.Targets)
	}
}

// The migration stores the names of all signers: of registered keys, of certificates, and
// their e-mail addresses.
func TestMigrationNamesSigners(t *testing.T) {
	path := UnpackV5(t)
	migrate(t, path, Options{NoCopy: true})
	names := texts(t, readRaw(t, path), `
SELECT DISTINCT n.name FROM signer_names n JOIN orgs o ON o.id = n.org_id WHERE o.name = 'acme' ORDER BY 1`)
	for _, want := range []string{"ann", "ann@acme.example", "mia", "mia@acme.example", "build", "gone", "dev"} {
		if !slices.Contains(names, want) {
			t.Errorf("names %q, want %q among them", names, want)
		}
	}
}

// The names of signers that an earlier release stored fold as identity.FoldName does, and the
// commits whose authors may be others are derived again.
func TestMigrationFoldsNames(t *testing.T) {
	path := unpackSchema(t, 17)
	db := readRaw(t, path)
	names := []string{"eve", "eve+work@acme.example", "eve@acme.example", "eve+a+b@acme.example", "+eve@acme.example",
		"+eve+x@acme.example", "123+eve@users.noreply.github.com", "eve2@users.noreply.github.com",
		"123-eve3@users.noreply.github.com", "1+eve4+x@users.noreply.github.com", "a1+eve5@users.noreply.github.com",
		"123-eve6@users.noreply.gitlab.com", "123@users.noreply.gitlab.com", "9-eve-7@users.noreply.git.acme.example",
		"1-x9-eve@users.noreply.git.acme.example", "x1-eve@users.noreply.git.acme.example", "12+@users.noreply.github.com",
		"12-@users.noreply.gitlab.com", "eve8@noreply.codeberg.org", "3+eve9@noreply.gitea.com",
		"@users.noreply.github.com", "a@b@users.noreply.github.com", "c+d@e+f@acme.example", "g@h+i",
		"noreply@github.com", "c++dev"}
	for _, name := range names {
		_, err := db.Exec("INSERT INTO signer_names (org_id, name, signer_id) SELECT org_id, ?, id FROM signers LIMIT 1",
			name)
		must.OK(t, err)
	}
	_, err := db.Exec("UPDATE commits SET author_email = 'eve+work@acme.example' WHERE id = (SELECT min(id) FROM commits)")
	must.OK(t, err)
	before := texts(t, db, "SELECT DISTINCT name FROM signer_names")
	must.OK(t, db.Close())
	migrate(t, path, Options{NoCopy: true})

	var want []string
	for _, name := range before {
		want = append(want, identity.FoldName(name))
	}
	slices.Sort(want)
	db = readRaw(t, path)
	got := texts(t, db, "SELECT DISTINCT name FROM signer_names ORDER BY name")
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("names  %q\nwant   %q", got, want)
	}
}

// A name is stored for a limited number of signers.
func TestNamesAreBounded(t *testing.T) {
	path := UnpackV5(t)
	migrate(t, path, Options{NoCopy: true})
	s, err := Open(t.Context(), path, Options{})
	must.OK(t, err)
	defer s.Close()

	must.OK(t, s.db.Change(t.Context(), "acme", func(t *txn.Tx) error {
		for i := range signers.MaxNamed + 5 {
			id, err := t.Insert("INSERT INTO signers (org_id, dn, cn) VALUES (1, ?, 'ci')", fmt.Sprint("cn=ci,ou=", i))
			if err != nil {
				return err
			}
			if _, err := signers.AddSignerName(t.Conn, 1, id, "ci"); err != nil {
				return err
			}
		}

		var n int
		if err := t.Row("SELECT count(*) FROM signer_names WHERE name = 'ci'").Scan(&n); err != nil {
			return err
		}
		if n != signers.MaxNamed {
			return fmt.Errorf("%d signers have the name, want %d", n, signers.MaxNamed)
		}
		return nil
	}))
}
