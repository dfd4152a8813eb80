package store

import (
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A database of the release before has, of each signer, the first statement that links an artifact.
// If that is not a build, the upgrade finds the signer's first build that is about this artifact
// alone, because by the present rules of contracts only builds link.
func TestMigrationFindsBuilds(t *testing.T) {
	path := unpack(t, "testdata/schemas/v17.db.gz")
	db := readRaw(t, path)
	run := func(statement string, args ...any) {
		t.Helper()
		_, err := db.Exec(statement, args...)
		must.OK(t, err)
	}
	const first = "(SELECT min(id) FROM attestations)" // test:go
	image := func(n byte) []byte { return append(make([]byte, 31), n) }

	run("INSERT INTO predicates (id, org_id, name) SELECT 900, id, 'build:gh' FROM orgs WHERE name = 'acme'")
	run("CREATE TABLE builds AS SELECT * FROM attestations WHERE id = " + first)
	for id := 901; id <= 903; id++ { // two builds of image 1, and one of image 3
		run(`UPDATE builds SET id = ?1, attestation_id = 'att_' || ?1, predicate_id = 900, payload_digest = randomblob(32),
			slot = 'sha256:' || ?2, mapping_version = 999`, id, hex.EncodeToString(image(1+2*byte(id/903))))
		run("INSERT INTO attestations SELECT * FROM builds")
	}
	run("DROP TABLE builds")
	for n, linkedBy := range []string{1: first, 2: first, 3: "903"} {
		if linkedBy != "" {
			run(`INSERT INTO artifacts (org_id, digest, commit_id, identity_id, signer_id, attestation_id)
				SELECT r.org_id, ?, a.commit_id, a.identity_id, a.signer_id, a.id
				FROM attestations a JOIN repos r ON r.id = a.repo_id WHERE a.id = `+linkedBy, image(byte(n)))
		}
	}
	must.OK(t, db.Close())

	migrate(t, path, Options{NoCopy: true})
	var got []string
	for n := range byte(4) {
		for _, link := range texts(t, readRaw(t, path), `
			SELECT l.is_build || ' ' || a.id || ' ' || p.name FROM artifacts l JOIN attestations a ON a.id = l.attestation_id
			JOIN predicates p ON p.id = a.predicate_id WHERE l.digest = ? ORDER BY l.is_build`, image(n)) {
			got = append(got, fmt.Sprint(n, " ", link))
		}
	}
	want := []string{"1 0 1 test:go", "1 1 901 build:gh", "2 0 1 test:go", "3 1 903 build:gh"}
	if !slices.Equal(got, want) {
		t.Errorf("links %q, want %q", got, want)
	}
}
