package run

import (
	"bytes"
	"cmp"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/cli"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

// A database with problems has an exit status of its own, and a line for each, whatever names it has.
func TestCheckOfAChangedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateOrg(t.Context(), "acme")
	if err == nil {
		_, err = s.CreateRepo(t.Context(), "acme", ledger.NewRepo{Name: "api"}, "host")
	}
	if err = cmp.Or(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("UPDATE orgs SET log_id = 7, name = 'ac' || char(10) || 'me'")
	if err = cmp.Or(err, db.Close()); err != nil {
		t.Fatal(err)
	}

	var stdout, stderr bytes.Buffer
	p := cli.New(nil, &stdout, &stderr)
	root := &cobra.Command{Use: "ledgerd", SilenceErrors: true, SilenceUsage: true}
	p.AddGlobalFlags(root)
	root.AddCommand(newCheck(p))
	root.SetArgs([]string{"check", "--database", path})
	err = root.ExecuteContext(t.Context())
	if p.Status(err) != cli.ExitNotReached || !cli.Silent(err) {
		t.Errorf("got %v, status %d, want %d", err, p.Status(err), cli.ExitNotReached)
	}
	for _, want := range []string{"log ac me: the org's present log is row 7", ": 3 problems (orgs 1, events "} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the output does not contain %q:\n%s", want, stdout.String())
		}
	}
}
