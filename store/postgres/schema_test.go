package postgres

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/pgtest"
)

var update = flag.Bool("update", false, "write migrations/schema.sha256 instead of comparing with it")

// The comparison makes what the migrations make as temporary tables, which are the same schema.
func TestSchemaDigestIsThatOfTheMigrations(t *testing.T) {
	t.Parallel()
	s, err := Connect(t.Context(), pgtest.Start(t, pgtest.Fast()...).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Create(); err != nil {
		t.Fatal(err)
	}
	_, schema, err := inspectAlone(s.Conn)
	if err != nil {
		t.Fatal(err)
	}

	if *update {
		if err := os.WriteFile("migrations/schema.sha256", []byte(schema.Digest()+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if strings.TrimSpace(digest) != schema.Digest() {
		t.Error("migrations/schema.sha256 is not the digest of what the migrations make, so each start makes a schema to " +
			"compare with: run 'go test ./store/postgres -run SchemaDigest -update'")
	}
}
