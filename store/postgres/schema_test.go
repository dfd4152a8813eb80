package postgres

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/pgtest"
)

var update = flag.Bool("update", false, "write migrations/schema.sha256 instead of comparing with it")

// The comparison makes what the migrations make as temporary tables, which are the same schema.
func TestSchemaDigestIsThatOfTheMigrations(t *testing.T) {
	t.Parallel()
	s, err := Connect(t.Context(), pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	must.OK(t, err)
	defer s.Close()
	must.OK(t, s.Create())
	_, schema, err := inspectAlone(s.Conn)
	must.OK(t, err)

	if *update {
		must.OK(t, os.WriteFile("migrations/schema.sha256", []byte(schema.Digest()+"\n"), 0o644))
		return
	}
	if strings.TrimSpace(digest) != schema.Digest() {
		t.Error("migrations/schema.sha256 is not the digest of what the migrations make, so each start makes a schema to " +
			"compare with: run 'go test ./store/postgres -run SchemaDigest -update'")
	}
}
