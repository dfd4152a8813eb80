package attestation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A change record names its repo, its base, and all changed paths in order.
func TestChangesAreValidated(t *testing.T) {
	record := func(paths string) string {
		return `{"repo":"acme/api","base":"` + otherCommit + `","paths":` + paths + `}`
	}
	var many []string
	for i := range MaxChangedPaths + 1 {
		many = append(many, fmt.Sprintf(`"%05d"`, i))
	}
	for _, test := range []struct{ name, predicate, field string }{
		{"two paths", record(`["api.go","web/app.js"]`), ""},
		{"no path", record(`[]`), ""},
		{"as many as possible", record("[" + strings.Join(many[1:], ",") + "]"), ""},
		{"one more", record("[" + strings.Join(many, ",") + "]"), "paths"},
		{"no paths", `{"repo":"acme/api","base":"` + otherCommit + `"}`, "paths"},
		{"null", record("null"), "paths"},
		{"no repo", `{"base":"` + otherCommit + `","paths":[]}`, "repo"},
		{"a strange repo", `{"repo":"api","base":"` + otherCommit + `","paths":[]}`, "repo"},
		{"no base", `{"repo":"acme/api","paths":[]}`, "base"},
		{"a short base", `{"repo":"acme/api","base":"abc","paths":[]}`, "base"},
		{"not sorted", record(`["b","a"]`), "paths[1]"},
		{"the same path again", record(`["a","a"]`), "paths[1]"},
		{"an empty path", record(`["a",""]`), "paths[1]"},
		{"an absolute path", record(`["/a"]`), "paths[0]"},
		{"a long path", record(`["` + strings.Repeat("a", 4097) + `"]`), "paths[0]"},
		{"a zero byte", record(`["a\u0000"]`), "paths[0]"},
		{"another spelling", `{"repo":"acme/api","base":"` + otherCommit + `","Paths":[],"paths":[]}`, "paths"},
	} {
		st, err := parseStatement([]byte(statementOf(aboutCommit, ledger.ChangesType, test.predicate)), Place{})
		wantFault(t, test.name, err, test.field)
		if err == nil && (st.outcome.Predicate != "changes:paths" || st.outcome.Slot != otherCommit ||
			st.outcome.Result.Status != ledger.Recorded || st.changes == nil) {
			t.Errorf("%s: %+v", test.name, st.outcome)
		}
	}
}

// A new record is sorted, and cannot compare a commit with itself.
func TestNewChangesStatement(t *testing.T) {
	c := Changes{Repo: "acme/api", Base: otherCommit, Paths: []string{"b", "a", "b"}}
	payload := must.Get(NewChangesStatement(ledgertest.Commit, c))(t)
	st := must.Get(parseStatement(payload, Place{}))(t)
	if !slices.Equal(st.changes.Paths, []string{"a", "b"}) {
		t.Errorf("paths %q, want a and b", st.changes.Paths)
	}

	c.Paths = nil
	st = must.Get(parseStatement(must.Get(NewChangesStatement(ledgertest.Commit, c))(t), Place{}))(t)
	if st.changes.Paths == nil || len(st.changes.Paths) > 0 {
		t.Errorf("paths %#v of a commit that changes nothing", st.changes.Paths)
	}
	c.Base = ledgertest.Commit
	_, err := NewChangesStatement(ledgertest.Commit, c)
	wantFault(t, "the commit itself", err, "base")
	c.Base = strings.Repeat("a", 64)
	_, err = NewChangesStatement(ledgertest.Commit, c)
	wantFault(t, "another hash function", err, "base")
}
