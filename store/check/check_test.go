package check_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/check"
)

// A damaged block is a problem, wherever it is.
func TestDamagedFile(t *testing.T) {
	d := newDatabase(t, 60)
	content := must.Read(t, d.path)
	for block := 5; block < len(content)/4096; block += 7 {
		damaged := bytes.Clone(content)
		copy(damaged[block*4096:], make([]byte, 4096))
		path := filepath.Join(t.TempDir(), "damaged.db")
		must.OK(t, os.WriteFile(path, damaged, 0o600))
		report, err := check.Run(t.Context(), path, check.Options{})
		if err == nil && report.Found == 0 {
			t.Errorf("block %d is zero, and nothing was found", block)
		}
	}
}

// A check changes no file, also if it is read-only.
func TestCheckWritesNothing(t *testing.T) {
	d := newDatabase(t, 3)
	before := must.Read(t, d.path)
	folder := filepath.Dir(d.path)
	must.OK(t, os.Chmod(folder, 0o500))
	defer os.Chmod(folder, 0o700)
	if lines := d.problems(t); len(lines) > 0 {
		t.Errorf("problems: %q", lines)
	}
	after := must.Read(t, d.path)
	files := must.Get(os.ReadDir(folder))(t)
	if !bytes.Equal(before, after) || len(files) != 2 {
		t.Errorf("the check has changed the folder: %v", files)
	}
}

// What a server records while its database is checked is no problem.
func TestCheckOfALiveDatabase(t *testing.T) {
	for _, step := range []string{"events", "commits"} {
		t.Run("while "+step+" are checked", func(t *testing.T) { testLiveCheck(t, step) })
	}
}

// testLiveCheck checks a database, and changes it during a step.
func testLiveCheck(t *testing.T, during string) {
	d := newDatabase(t, 3)
	s := must.Get(store.Open(t.Context(), d.path, store.Options{}))(t)
	defer s.Close()

	var changed sync.Once
	change := func() {
		contract, err := policy.Parse([]byte(`{"requirements":[{"state":"ATTESTED","predicate":"test:go"}]}`))
		must.OK(t, err)
		_, err = s.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
		must.OK(t, err)
		for n := range 2 {
			_, _, err = s.Register(t.Context(), "acme", "api", sha(n), ledger.Registration{Branch: "changed"})
			must.OK(t, err)
		}
		identities, err := s.Identities(t.Context(), "acme", store.Query{Limit: 1})
		must.OK(t, err)
		must.OK(t, s.RevokeIdentity(t.Context(), "acme", identities.Data[0].ID))
	}

	report, err := check.Run(t.Context(), d.path, check.Options{Progress: func(step string, _, _ int64) {
		if strings.HasPrefix(step, during) {
			changed.Do(change)
		}
	}})
	must.OK(t, err)
	for _, p := range report.Problems {
		t.Errorf("problem: %+v", p)
	}
	if report.Commits == 0 {
		t.Error("nothing was checked")
	}
}

// What is known of commits is compared up to a limit, and beyond it nothing is a problem.
func TestKnownCommitsAreBounded(t *testing.T) {
	d := newDatabase(t, 3)
	s := must.Get(store.Open(t.Context(), d.path, store.Options{}))(t)
	for n := range 3 {
		_, _, err := s.Register(t.Context(), "acme", "api", fmt.Sprintf("%040x", 0xbeef+n), ledger.Registration{Branch: "x"})
		must.OK(t, err)
	}
	must.OK(t, s.Settle(t.Context()))
	must.OK(t, s.Close())

	for limit, isBeyond := range map[int]bool{3: true, 4: false} {
		report, err := check.Run(t.Context(), d.path, check.Options{}.WithMaxKnown(limit))
		must.OK(t, err)
		for _, p := range report.Problems {
			t.Errorf("limit %d: problem: %+v", limit, p)
		}
		said := fmt.Sprintf("acme: what is known of more than %d commits", limit)
		if slices.Contains(report.Unchecked, said) != isBeyond {
			t.Errorf("limit %d: unchecked are %q", limit, report.Unchecked)
		}
	}
}

// What is known of commits is not compared with events that are missing for a good reason.
func TestCommitsThatAreNotCompared(t *testing.T) {
	d := newDatabase(t, 3)
	const changed = "; UPDATE commits SET branch = 'main' WHERE branch = 'fix'"
	for name, test := range map[string]struct{ statement, want, problem string }{
		"during an upgrade": {`
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
VALUES (1, 'log', 0, 1, 'upgrade', '', 0, 0, 0)` + changed,
			"acme: what is known of 1 commits: the server is still logging what was known before an upgrade", ""},
		"events without a body": {"UPDATE events SET body = x'', salt = NULL WHERE type = 'commit'" + changed,
			"acme: what 1 events say of commits: their bodies are pruned or wrong",
			"it was pruned, and events of the type commit never are"},
	} {
		copied := d.copy(t, run(test.statement))
		report, err := check.Run(t.Context(), copied.path, check.Options{})
		must.OK(t, err)
		for _, p := range report.Problems {
			if p.Problem != test.problem {
				t.Errorf("%s: problem: %+v", name, p)
			}
		}
		if (len(report.Problems) == 0) != (test.problem == "") {
			t.Errorf("%s: %d problems, want %q", name, len(report.Problems), test.problem)
		}
		if !slices.Contains(report.Unchecked, test.want) {
			t.Errorf("%s: unchecked are %q, want %q", name, report.Unchecked, test.want)
		}
	}
}
