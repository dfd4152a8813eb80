package cmd

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ledgerd/ledgerd/internal/pgtest"
)

// TestPostgresScript is like TestScript, for the scripts in testdata/postgres. The variables
// POSTGRES and OTHER_POSTGRES have the URLs of two empty databases.
func TestPostgresScript(t *testing.T) {
	cluster := pgtest.Start(t, pgtest.Fast()...)
	runScripts(t, "testdata/postgres", func(env *testscript.Env) error {
		env.Vars = append(env.Vars, "POSTGRES="+cluster.NewDatabase(t), "OTHER_POSTGRES="+cluster.NewDatabase(t))
		return setUpScript(env)
	})
}
