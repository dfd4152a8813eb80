package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/store/txn"
)

// mappedRows returns the outcome of each attestation of a database, and the commit's
// latest ones.
func mappedRows(t *testing.T, path string) (outcomes, latest []string) {
	db := readRaw(t, path)
	defer db.Close()
	outcomes = texts(t, db, `
SELECT concat_ws(' ', a.id, y.uri, p.name, a.slot, a.status, a.duration_ms, a.mapping_version)
FROM attestations a JOIN predicates p ON p.id = a.predicate_id JOIN predicate_types y ON y.id = a.type_id
ORDER BY a.id`)
	latest = texts(t, db, `
SELECT concat_ws(' ', l.commit_id, p.name, l.slot, s.dn, l.attestation_id)
FROM latest l JOIN predicates p ON p.id = l.predicate_id JOIN signers s ON s.id = l.signer_id ORDER BY 1`)
	return outcomes, latest
}

// A database of the release before is mapped by the present rules in the background.
// Events stay as they are.
func TestStatementsOfAnEarlierReleaseAreMapped(t *testing.T) {
	path := UnpackV5(t)
	events := func() []string {
		db := readRaw(t, path)
		defer db.Close()
		return texts(t, db, "SELECT concat_ws(' ', id, event_id, type, body) FROM events ORDER BY id")
	}
	before := events()
	s, err := Open(t.Context(), path, Options{NoCopy: true})
	must.OK(t, err)
	must.OK(t, s.Settle(t.Context()))
	must.OK(t, s.Close())

	outcomes, latest := mappedRows(t, path)
	byType := make(map[string]string)
	for _, line := range outcomes {
		f := strings.Split(line, " ")
		if f[len(f)-1] != fmt.Sprint(attestation.MappingVersion) {
			t.Errorf("not mapped: %s", line)
		}
		byType[f[1]] = strings.SplitAfter(f[2], ":")[0]
	}
	for uri, kind := range map[string]string{"https://in-toto.io/attestation/test-result/v0.1": "test:",
		"https://slsa.dev/provenance/v1": "build:"} {
		if byType[uri] != kind {
			t.Errorf("%s is mapped to %q, want %s", uri, byType[uri], kind)
		}
	}

	db := readRaw(t, path)
	defer db.Close()
	if linked := texts(t, db, "SELECT hex(digest) FROM artifacts"); len(linked) == 0 {
		t.Error("no artifacts of the earlier release are linked")
	}
	after := events()
	if !slices.Equal(after[:len(before)], before) {
		t.Error("events have changed")
	}
	for _, e := range after[len(before):] {
		if !strings.Contains(e, `"type":"upgrade"`) && !strings.Contains(e, `"type":"commit"`) {
			t.Errorf("an event without the cause upgrade, and not of what is known of a commit: %s", e)
		}
	}
	checkCounters(t, path)
	if want := latestOf(t, path); !slices.Equal(latest, want) {
		t.Errorf("latest is\n%s\nwant\n%s", strings.Join(latest, "\n"), strings.Join(want, "\n"))
	}
}

// latestOf computes the table latest from the attestations.
func latestOf(t *testing.T, path string) []string {
	db := readRaw(t, path)
	defer db.Close()
	return texts(t, db, `
SELECT concat_ws(' ', commit_id, name, slot, dn, id) FROM (
  SELECT a.commit_id, p.name, a.slot, s.dn, a.id, row_number() OVER (
    PARTITION BY a.commit_id, a.predicate_id, a.slot, a.signer_id ORDER BY a.status = 'recorded', a.id DESC) AS n
  FROM attestations a JOIN predicates p ON p.id = a.predicate_id JOIN signers s ON s.id = a.signer_id)
WHERE n = 1 ORDER BY 1`)
}

// checkCounters checks that the counters of predicates are right.
func checkCounters(t *testing.T, path string) {
	t.Helper()
	db := readRaw(t, path)
	defer db.Close()
	wrong := texts(t, db, `
SELECT name FROM predicates p
WHERE attestations <> (SELECT count(*) FROM attestations a WHERE a.predicate_id = p.id)`)
	if len(wrong) > 0 {
		t.Errorf("the counters of %q are wrong", wrong)
	}
}

// If the rules give the latest statement another predicate, the one before is the latest again, whether or
// not its envelope was pruned.
func TestMappingFindsTheLatestBefore(t *testing.T) {
	w := newTwin(t)
	defer w.Close()
	ctx := t.Context()
	must.OK(t, w.Settle(ctx))
	w.recordEach(t, []*drawn{stated("ci", 0, "test:go", ledger.Pass), stated("ci", 0, "test:go", ledger.Skip)})
	must.OK(t, w.db.Change(ctx, "", func(t *txn.Tx) error {
		return t.Run(`
UPDATE envelopes SET body = randomblob(32), payload = NULL, payload_at = -1 WHERE attestation_id = 1;
UPDATE attestations SET mapping_version = 1; UPDATE repos SET mapping_version = 1`)
	}))
	must.OK(t, w.ResumeMapping(ctx))
	must.OK(t, w.Settle(ctx)) // the second is no statement, and is mapped to its type

	var list []string
	must.OK(t, w.db.Change(ctx, "", func(t *txn.Tx) error {
		return t.Each(func(row txn.Scanner) error {
			var predicate string
			var id int64
			err := row.Scan(&predicate, &id)
			list = append(list, fmt.Sprint(predicate, " ", id))
			return err
		}, "SELECT p.name, l.attestation_id FROM latest l JOIN predicates p ON p.id = l.predicate_id ORDER BY 2")
	}))
	if want := []string{"test:go 1", attestation.ResultPredicateType + " 2"}; !slices.Equal(list, want) {
		t.Errorf("the latest are %q, want %q", list, want)
	}
}
