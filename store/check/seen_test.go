package check_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
)

// clone returns a copy of a database with a copy of its keys.
func (d database) clone(t *testing.T) database {
	t.Helper()
	c := d.copy(t, func(testing.TB, *sql.DB) {})
	c.keys = c.path + "-keys"
	must.OK(t, os.CopyFS(c.keys, os.DirFS(d.keys)))
	must.OK(t, os.Chmod(c.keys, 0o700))
	return c
}

// grow changes a policy, once for each predicate, and signs the log. It returns the checkpoint.
func (d database) grow(t *testing.T, predicates ...string) []byte {
	t.Helper()
	s := must.Get(store.Open(t.Context(), d.path, store.Options{}))(t)
	for _, predicate := range predicates {
		contract, err := policy.Parse(fmt.Appendf(nil, `{"requirements":[{"state":"ATTESTED","predicate":%q}]}`, predicate))
		must.OK(t, err)
		_, err = s.SetPolicy(t.Context(), "acme", "web", contract, 0, "host")
		must.OK(t, err)
	}
	must.OK(t, s.Settle(t.Context()))
	d.sign(t, s)
	l, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	must.OK(t, s.Close())
	return l.Checkpoint
}

// wantProblem checks that a check with these options reports a line with all parts, or nothing if
// want is empty.
func (d database) wantProblem(t *testing.T, o check.Options, want ...string) {
	t.Helper()
	report, err := check.Run(t.Context(), d.path, o)
	must.OK(t, err)
	var lines []string
	for _, p := range report.Problems {
		lines = append(lines, p.String())
	}
	if len(want) == 0 && len(lines) == 0 {
		return
	}
	if len(want) == 0 || !slices.ContainsFunc(lines, func(line string) bool { return containsAll(line, want) }) {
		t.Errorf("got the problems\n%s\nwant %q", strings.Join(lines, "\n"), want)
	}
}

// A history that fits, with signatures that fit, is not the one that was seen elsewhere.
func TestCheckpointsThatWereSeenElsewhere(t *testing.T) {
	d := newDatabase(t, 20)
	earlier := d.grow(t)
	old := d.clone(t)
	newest := d.grow(t, "test:a", "test:b", "test:c")
	fork := old.clone(t)
	forked := fork.grow(t, "test:x", "test:y", "test:z")
	stranger := newDatabase(t, 2).grow(t)
	see := func(signed ...[]byte) (o check.Options) {
		for _, s := range signed {
			o.Seen = append(o.Seen, check.Seen{What: "their.checkpoint", Signed: s})
		}
		return o
	}

	d.wantProblem(t, see(earlier, newest))
	fork.wantProblem(t, see(earlier, forked))
	old.wantProblem(t, see(newest), "checkpoint acme log: their.checkpoint has ", "or the database is older")
	fork.wantProblem(t, see(newest), "checkpoint acme log: their.checkpoint says that the first ")
	d.wantProblem(t, see(stranger), "checkpoint acme log: their.checkpoint is not signed by the log's key in the database")
	renamed := []byte(strings.Replace(string(newest), "ledger.example.com/", "other.example.com/", 1))
	d.wantProblem(t, see(renamed), "checkpoint: their.checkpoint is of the log other.example.com/v1/orgs/acme/log, which ")
	if _, err := check.Run(t.Context(), d.path, see([]byte("nonsense"))); err == nil ||
		!strings.HasPrefix(err.Error(), "their.checkpoint: ") {
		t.Errorf("a file without a checkpoint: %v", err)
	}

	// What others say when they are asked counts like that.
	asked := ""
	others := func(list ...check.Seen) check.Options {
		return check.Options{Others: func(_ context.Context, origin string) ([]check.Seen, []string) {
			asked = origin
			return list, []string{"a witness that is asleep"}
		}}
	}
	old.wantProblem(t, others(check.Seen{What: "the witness w", Signed: newest}),
		"checkpoint acme log: the witness w has ")
	old.wantProblem(t, others(check.Seen{What: "the witness w", Signed: earlier}))
	report, err := check.Run(t.Context(), old.path, others(check.Seen{What: "the witness w", Signed: []byte("?")}))
	must.OK(t, err)
	if report.Found > 0 || len(report.Unchecked) != 2 || report.Unchecked[0] != "a witness that is asleep" ||
		!strings.HasPrefix(report.Unchecked[1], "the witness w: ") || asked != "ledger.example.com/v1/orgs/acme/log" {
		t.Errorf("asked for %q: %+v", asked, report)
	}
}

// The last checkpoint that the server has signed is next to the keys, not in the database.
func TestLastSignedCheckpoint(t *testing.T) {
	d := newDatabase(t, 20)
	old := d.clone(t)
	last := check.Seen{What: filepath.Join(d.keys, "acme.1.checkpoint"), IsLast: true}
	last.Signed = d.grow(t, "test:a", "test:b")
	o := check.Options{Seen: []check.Seen{last}}
	d.wantProblem(t, o)
	old.wantProblem(t, o, "checkpoint acme log: ", "acme.1.checkpoint has ", "or the database is older")
	last.Signed = []byte("torn")
	d.wantProblem(t, check.Options{Seen: []check.Seen{last}}, "checkpoint: the last signed checkpoint, ", " is damaged: ")

	// The log that was replaced has ended, and the next one begins with its checkpoint.
	s := must.Get(store.Open(t.Context(), old.path, store.Options{}))(t)
	l, err := s.Log(t.Context(), "acme", 0)
	must.OK(t, err)
	_, err = s.BeginEpoch(t.Context(), l, 2, ledger.KeyEvent{Action: ledger.KeyAdded, Purpose: ledger.KeyOfLog,
		Previous: &ledger.PreviousLog{Origin: l.Origin}})
	must.OK(t, err)
	must.OK(t, s.Close())
	old.wantProblem(t, o)
	seen := o.Seen[0]
	seen.IsLast = false
	old.wantProblem(t, check.Options{Seen: []check.Seen{seen}}, "checkpoint acme log: ", "acme.1.checkpoint has ")
}
