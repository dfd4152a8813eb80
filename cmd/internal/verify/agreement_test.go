package verify

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity/sigstore"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
	"github.com/ledgerd/ledgerd/store/check"
)

// isUsed is true of an identity with whose key an attestation was verified. Without the database, only these are
// checked.
const isUsed = "id IN (SELECT identity_id FROM attestations)"

// forgeries are changes of a row that the API and exports show, too: of one of the rows of a table, by their key.
var forgeries = []struct{ table, key, rows, set string }{
	{"events", "id", "type <> 'key'", `body = CAST(replace(body, 'timestamp":"2', 'timestamp":"3') AS BLOB)`},
	{"events", "id", "type <> 'key'", "salt = zeroblob(16)"},
	{"attestations", "id", "true", "status = 1 - status"},
	{"attestations", "id", "true", "duration_ms = duration_ms + 1"},
	{"attestations", "id", "true", "payload_digest = zeroblob(32)"},
	{"attestations", "id", "true", "predicate_id = 1 + predicate_id % 3"},
	{"attestations", "id", "true", "slot = 'x'"},
	{"attestations", "id", "true", "signer_id = 1 + signer_id % 3"},
	{"envelopes", "attestation_id", "true", "body = CAST('x' || body AS BLOB)"},
	{"commits", "id", "attestations > 0", "state = (state + 1) % 5"},
	{"commits", "id", "state > 0", "state_since = state_since + 1"},
	{"commits", "id", "branch <> ''", "branch = 'x'"},
	{"commits", "id", "writers <> ''", "writers = replace(writers, 'a', 'o')"},
	{"transitions", "event", "true", "at = at + 1"},
	{"policies", "version", "true", "digest = 'sha256:00'"},
	{"policies", "version", "true", "contract = CAST(replace(CAST(contract AS TEXT), 'TTESTED', 'LIDATING') AS BLOB)"},
	{"identities", "id", isUsed, "may = 'test:*'"},
	{"identities", "id", isUsed, "email = 'eve@example.com'"},
	{"identities", "id", isUsed, "revoked_at = 1"},
}

// A repo that is read by the API, an export of it and the database file have the same fault under the same name,
// in the same words. Each sees what the others do not see, too: an export has no other commits, and only a
// database has columns.
func TestSourcesAgree(t *testing.T) {
	first := testenv.Seed(t)
	for seed := first; seed < first+uint64(testenv.Pick(4, 25, 200)); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			h := newRandomHost(t, random)
			f := forgeries[random.IntN(len(forgeries))]
			p := pinned(h)
			h.edit(func(db *sql.DB) {
				var keys []string
				rows, err := db.Query("SELECT " + f.key + " FROM " + f.table + " WHERE " + f.rows)
				must.OK(t, err)
				for rows.Next() {
					var key string
					must.OK(t, rows.Scan(&key))
					keys = append(keys, key)
				}
				must.OK(t, rows.Err())
				if len(keys) == 0 {
					return
				}
				statement := fmt.Sprintf("UPDATE %s SET %s WHERE %s = ?", f.table, f.set, f.key)
				key := keys[random.IntN(len(keys))]
				must.Get(db.Exec(statement, key))(t)
				t.Log(statement, key)
			})

			inFile, err := check.Run(t.Context(), filepath.Join(h.folder, "ledger.db"),
				check.Options{ParseRoot: sigstore.ParseRoot})
			must.OK(t, err)
			byAPI, apiErr := rederiving(t).try(newSite(t, h), repo(t))
			compareReports(t, "API", inFile, byAPI, apiErr)
			var out bytes.Buffer
			_, err = evidence.Export(t.Context(), h.admin, evidence.Options{Org: "acme", Repo: "api", Version: "v1", Since: 1,
				Now: ledger.TimeOf(time.Now())}, &out)
			var exported verify.Report
			if err == nil {
				exported, err = p.evidence(out.Bytes())
			}
			compareReports(t, "export", inFile, exported, err)
			if inFile.Found > 0 && byAPI.Verified && exported.Verified {
				t.Errorf("only the check of the database finds it: %s", inFile.Problems[0])
			}
		})
	}
}

// compareReports checks that the database has each fault that another source has.
func compareReports(t *testing.T, source string, inFile check.Report, r verify.Report, err error) {
	t.Helper()
	if err != nil {
		if inFile.Found == 0 {
			t.Errorf("%s: %v", source, err)
		}
		return // the server, or the export, refuses to show what does not fit
	}
	for _, c := range r.Checks {
		isSaid := slices.ContainsFunc(inFile.Problems, func(p check.Problem) bool {
			isConsequence := c.Name == verify.CheckDerivation && p.Check == verify.CheckSignature // it counts for nothing
			return isConsequence || p.Check == c.Name && strings.HasSuffix(c.Detail, p.Problem)
		})
		if c.Status == verify.Failed && !isSaid {
			t.Errorf("%s: %s: %s, which the database does not say:\n%v", source, c.Name, c.Detail, inFile.Problems)
		}
	}
}
