package check_test

import (
	"crypto/sha256"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
	"github.com/ledgerd/ledgerd/store/storetest"
)

const annDN = "cn=ann,ou=people-dev,o=acme"

// newPasskeyDatabase returns a database with two passkeys, of which one was removed, and with three reviews.
// They have confirmed the first two.
func newPasskeyDatabase(t *testing.T) database {
	t.Helper()
	s, path := newAcme(t, store.Options{Providers: storetest.Providers()})
	ann := storetest.NewReviewer(t, s, annDN)
	ann.Review(s, sha(1), ann.Assert)
	ann.Enrol(s)
	ann.Review(s, sha(2), ann.Assert)
	ann.Review(s, sha(3), nil)
	must.OK(t, s.RemovePasskey(t.Context(), "acme", "", ann.Passkey.ID))
	must.OK(t, s.Settle(t.Context()))
	must.OK(t, s.Close())
	return database{path: path}
}

// Assertions are those that were recorded, and passkeys those that events say.
func TestPasskeys(t *testing.T) {
	d := newPasskeyDatabase(t)
	const first, removed = " WHERE attestation_id = 1", " WHERE removed_at > 0"
	const pruned = `; UPDATE envelopes SET body = zeroblob(32), payload = NULL, payload_at = -1 WHERE attestation_id = 1`
	const prunedEvent = `; UPDATE events SET body = x'', salt = NULL
		WHERE event_id = (SELECT event_id FROM attestations WHERE id = 1)`
	// forged gives an attestation the assertion of another, or another text, with its digest.
	forged := func(text, then string) func(testing.TB, *sql.DB) {
		return func(t testing.TB, db *sql.DB) {
			t.Helper()
			var other string
			must.OK(t, db.QueryRow("SELECT CAST(assertion AS TEXT) FROM envelopes WHERE attestation_id = 2").Scan(&other))
			if text == "" {
				text = other
			}
			sum := sha256.Sum256([]byte(text))
			_, err := db.Exec("UPDATE envelopes SET assertion = ?"+first, []byte(text))
			must.OK(t, err)
			_, err = db.Exec("UPDATE attestations SET assertion = ? WHERE id = 1"+then, sum[:])
			must.OK(t, err)
		}
	}
	for name, test := range map[string]struct {
		change func(testing.TB, *sql.DB)
		want   []string
	}{
		"an assertion": {run(`UPDATE envelopes SET assertion = CAST(CAST(assertion AS TEXT) || ' ' AS BLOB)` + first),
			[]string{"passkey acme attestation att_", ": the assertion has the digest sha256:", ", and the event says sha256:"}},
		"an assertion of a pruned envelope": {run(`
			UPDATE envelopes SET assertion = CAST(CAST(assertion AS TEXT) || ' ' AS BLOB)` + first + pruned),
			[]string{"passkey acme attestation att_", ": the assertion has the digest sha256:"}},
		"an assertion of a pruned event": {run(`
			UPDATE envelopes SET assertion = CAST(CAST(assertion AS TEXT) || ' ' AS BLOB)` + first + prunedEvent),
			[]string{"passkey acme attestation att_", ": the assertion has the digest sha256:"}},
		"an assertion of a pruned event and envelope": {run(`
			UPDATE envelopes SET assertion = CAST(CAST(assertion AS TEXT) || ' ' AS BLOB)` + first + pruned + prunedEvent),
			[]string{"passkey acme attestation att_", ": the assertion has the digest sha256:"}},
		"a deleted assertion": {run(`UPDATE envelopes SET assertion = NULL` + first),
			[]string{"passkey acme attestation att_", ": the assertion is missing, and the event has its digest, sha256:"}},
		"an assertion without a digest": {run(`UPDATE attestations SET assertion = NULL WHERE id = 1`),
			[]string{"record acme attestation att_", ": assertion digest: the ledger says none, and it is sha256:"}},
		"the digest of an assertion": {run(`UPDATE attestations SET assertion = randomblob(32) WHERE id = 1`),
			[]string{"record acme attestation att_", ": assertion digest: the ledger says sha256:", ", and it is sha256:"}},
		"an assertion with its digest, deleted": {run(`
			UPDATE envelopes SET assertion = NULL; UPDATE attestations SET assertion = NULL`),
			[]string{"record acme attestation att_", ": assertion digest: the ledger says none, and it is sha256:"}},
		"the assertion of another attestation": {forged("", ""),
			[]string{"passkey acme attestation att_", ": the assertion has the digest sha256:", ", and the event says "}},
		"the assertion of another attestation, for a pruned event": {forged("", prunedEvent),
			[]string{"passkey acme attestation att_", ": the assertion of the passkey is invalid: "}},
		"an assertion that cannot be read, for a pruned event": {forged("{", prunedEvent),
			[]string{"passkey acme attestation att_", ": the assertion of the passkey is invalid: parse it: "}},
		"an assertion of an attestation that no passkey has confirmed": {run(`
			UPDATE envelopes SET assertion = x'7b' WHERE attestation_id = 3;
			UPDATE attestations SET assertion = x'00' WHERE id = 3`),
			[]string{"record acme attestation att_", ": assertion digest: the ledger says sha256:00, and it is "}},

		"the key of a passkey": {run(`UPDATE passkeys SET public_key = randomblob(77) WHERE id = 1`),
			[]string{"passkey acme passkey pas_", `: the row has the key "`, `", and event evt_`}},
		"the domain of a passkey": {run(`UPDATE passkeys SET rp_id = 'example.com' WHERE id = 1`),
			[]string{"passkey acme passkey pas_", `: the row has the domain "example.com", and event evt_`}},
		"the member of a passkey": {run(`UPDATE members SET dn = 'cn=eve,ou=people-dev,o=acme'`),
			[]string{"passkey acme passkey pas_", `: the row has the DN "cn=eve,ou=people-dev,o=acme", and event evt_`}},
		"a passkey that was removed": {run(`UPDATE passkeys SET removed_at = 0` + removed),
			[]string{"passkey acme passkey pas_", `: the row has the last action "added", and event evt_`, ` "revoked"`}},
		"a removal without an event": {run(`UPDATE passkeys SET removed_at = 1 WHERE id = 1`),
			[]string{"passkey acme passkey pas_", `: the row has the last action "revoked", and event evt_`, ` "added"`}},
		"the time of a removal": {run(`UPDATE passkeys SET removed_at = 1000` + removed),
			[]string{"passkey acme passkey pas_", `: the row has the time of its removal "1970-01-01T00:00:01.000Z"`}},
		"the ID of a passkey": {run(`UPDATE passkeys SET passkey_id = 'pas_x' WHERE id = 1`),
			[]string{"passkey acme passkey pas_x: there is no event about it"}},
		"a deleted passkey": {run(`DELETE FROM passkeys WHERE id = 1`),
			[]string{"passkey acme passkey pas_", ": there are events about it, the last is evt_", ", and no row"}},
	} {
		t.Run(name, func(t *testing.T) {
			d.copy(t, test.change).wantProblem(t, check.Options{}, test.want...)
		})
	}
	d.wantProblem(t, check.Options{})
	if report, err := check.Run(t.Context(), d.path, check.Options{}); err != nil || report.Attestations != 3 {
		t.Errorf("checked %d attestations, want 3: %v", report.Attestations, err)
	}
}

// What an assertion is about cannot be checked without the envelope, and nothing else is wrong.
func TestAssertionsOfPrunedEnvelopes(t *testing.T) {
	ago := func() time.Time { return time.Now().Add(-48 * time.Hour) }
	s, path := newAcme(t, store.Options{Now: ago, Providers: storetest.Providers()})
	ann := storetest.NewReviewer(t, s, annDN)
	ann.Review(s, sha(1), ann.Assert)
	must.OK(t, s.Close())
	s = must.Get(store.Open(t.Context(), path, store.Options{}))(t)
	keep := ledger.RetentionChange{Envelopes: new(ledger.MinRetention)}
	_, err := s.ChangeRepo(t.Context(), "acme", "api", ledger.RepoChange{Retention: &keep})
	must.OK(t, err)
	must.OK(t, s.Settle(t.Context()))
	must.OK(t, s.Close())

	report, err := check.Run(t.Context(), path, check.Options{})
	must.OK(t, err)
	if report.Found > 0 || report.PrunedEnvelopes != 1 {
		t.Errorf("%d envelopes are pruned, and found %v", report.PrunedEnvelopes, report.Problems)
	}
}

// A passkey that is enrolled or removed at any time of a check is no problem, nor is what it confirms.
func TestPasskeysChangeDuringACheck(t *testing.T) {
	ctx := t.Context()
	s, path := newAcme(t, store.Options{Providers: storetest.Providers()})
	defer s.Close()
	ann := storetest.NewReviewer(t, s, annDN)
	change := func() {
		before := ann.Passkey.ID
		ann.Enrol(s)
		ann.Review(s, sha(1), ann.Assert)
		must.OK(t, s.RemovePasskey(ctx, "acme", "", before))
	}

	for n, isDone := int64(1), false; !isDone; n++ {
		db, err := store.OpenSource(ctx, path)
		must.OK(t, err)
		source := &interrupted{Source: db, change: change, before: n}
		report, err := check.RunOn(ctx, source)
		must.OK(t, err)
		for _, problem := range report.Problems {
			t.Errorf("before read %d: %s", n, strings.TrimSpace(problem.String()))
		}
		must.OK(t, db.Close())
		isDone = source.reads.Load() < n
	}
}
