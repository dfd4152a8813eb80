package store

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/internal/envelope"
	"github.com/ledgerd/ledgerd/store/sqldb"
	"github.com/ledgerd/ledgerd/store/txn"
)

// A commit has room for so many topics. Then only newer evidence for one of them is
// recorded, however it arrives.
func TestTooMuchEvidence(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	var set []*drawn
	for i := range policy.MaxTopics - 1 {
		set = append(set, stated("ci", 0, fmt.Sprint("test:", i), ledger.Pass))
	}
	w.wantAll(t, w.recordSet(t, set), "")

	full := string(ledger.CodeTooMuchEvidence)
	again := stated("ci", 0, "test:0", ledger.Fail)
	results := w.recordSet(t, []*drawn{
		stated("ann", 0, "test:0", ledger.Pass), stated("ann", 0, "test:1", ledger.Pass), again,
		stated("ci", 0, "lint:go", ledger.Pass), stated("ci", 1, "lint:go", ledger.Pass), again,
	})
	for i, want := range []string{"true", full, "true", full, "true", "false"} {
		if !strings.HasPrefix(results[i], want) {
			t.Errorf("attestation %d: %s, want %s", i, results[i], want)
		}
	}
	w.wantAll(t, w.recordEach(t, []*drawn{
		stated("ann", 0, "test:2", ledger.Fail), inSlotOf(stated("ci", 0, "test:0", ledger.Pass), "sha256:x"),
	}), full)
	w.wantEvidence(t, policy.MaxTopics)
}

// A commit of an older release with more evidence goes on: evidence for its topics is
// replaced, others are refused.
func TestTooMuchOlderEvidence(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	set := make([]*drawn, 300)
	for i := range set {
		set[i] = stated("ci", 0, fmt.Sprint("test:", i), ledger.Pass)
	}
	w.wantAll(t, w.recordSet(t, set), "")
	must.OK(t, w.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		return c.Run(`
CREATE TEMP TABLE more AS SELECT * FROM attestations;
UPDATE more SET id = id + 1000000, slot = 'sha256:old', attestation_id = 'att_0' || substr(attestation_id, 6),
  payload_digest = randomblob(32);
INSERT INTO attestations SELECT * FROM more;
INSERT INTO latest (commit_id, predicate_id, slot, signer_id, attestation_id)
SELECT commit_id, predicate_id, slot, signer_id, id FROM more;
DROP TABLE more`)
	}}))
	w.wantEvidence(t, 600)

	results := w.recordEach(t, []*drawn{
		inSlotOf(stated("ci", 0, "test:5", ledger.Fail), "sha256:old"), stated("ci", 0, "test:6", ledger.Fail),
		stated("ann", 0, "test:7", ledger.Fail),
	})
	for i, want := range []string{"true", "true", string(ledger.CodeTooMuchEvidence)} {
		if !strings.HasPrefix(results[i], want) {
			t.Errorf("attestation %d: %s, want %s", i, results[i], want)
		}
	}
	w.wantEvidence(t, 600)
	c, err := w.Commit(t.Context(), "acme", "api", numbered(0))
	must.OK(t, err)
	failed := c.Requirements[0].Reason
	if !strings.Contains(failed, "test:5 failed") || !strings.Contains(failed, "test:6 failed") {
		t.Errorf("the reason is %q, want both failures", failed)
	}
}

// inSlotOf is d, but about an artifact.
func inSlotOf(d *drawn, slot string) *drawn {
	a := d.Attestation
	a.Slot, a.Payload = slot, append(a.Payload, slot...)
	a.PayloadDigest = sha256.Sum256(a.Payload)
	d.Envelope = envelope.Pack(a.Payload, nil)
	return d
}

// wantAll checks that all results are a code or, if it is empty, new records.
func (w twin) wantAll(t *testing.T, results []string, code string) {
	t.Helper()
	for i, r := range results {
		if code == "" && !strings.HasPrefix(r, "true") || code != "" && r != code {
			t.Fatalf("attestation %d: %s, want %q", i, r, code)
		}
	}
}

// wantEvidence checks how much evidence the state of commit 0 follows from.
func (w twin) wantEvidence(t *testing.T, want int) {
	t.Helper()
	got, err := txn.Read(t.Context(), w.Store.db, txn.ForWrite("acme"), func(rd txn.Reader) (n int, err error) {
		return n, rd.Row("SELECT count(*) FROM latest WHERE commit_id = (SELECT id FROM commits WHERE sha = ?)",
			numbered(0)).Scan(&n)
	})
	if err != nil || got != want {
		t.Errorf("evidence on %d topics, %v; want %d", got, err, want)
	}
}
