package attestation

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/ledgertest"
)

// A merge of source and parent, whose objects have ids of the same digit.
const (
	mergeSource = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	mergeParent = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	mergeTree   = "cccccccccccccccccccccccccccccccccccccccc"
	mergeBody   = `{"repo":"acme/api","kind":"squash","source":{"sha":"` + mergeSource + `"},"parent":{"sha":"` +
		mergeParent + `"},"tree":"` + mergeTree + `","tools":{"git":"2.39.5"},` +
		`"startedOn":"2026-11-20T09:00:00Z","finishedOn":"2026-11-20T09:00:01.5Z"}`
)

func TestParseMerge(t *testing.T) {
	got, err := parseStatement([]byte(statementOf(aboutCommit, MergePredicateType, mergeBody)), Place{})
	must.OK(t, err)
	finished := ledger.TimeOf(time.Date(2026, 11, 20, 9, 0, 1, 5e8, time.UTC))
	want := Outcome{Predicate: "merge:squash", Slot: mergeSource,
		Result: ledger.Result{Status: ledger.Pass, DurationMS: 1500}, FinishedAt: finished}
	if got.outcome != want || got.repo != "acme/api" {
		t.Errorf("%+v for %s, want %+v", got.outcome, got.repo, want)
	}
	if m := got.merge; m.Kind != Squashed || m.Source.SHA != mergeSource || m.Parent.SHA != mergeParent ||
		m.Tree != mergeTree {
		t.Errorf("merge: %+v", m)
	}
}

// What NewMergeStatement writes is what parseStatement reads.
func TestNewMergeStatement(t *testing.T) {
	var m Merge
	must.OK(t, json.Unmarshal([]byte(mergeBody), &m))
	text, err := NewMergeStatement(ledgertest.Commit, m)
	must.OK(t, err)
	got, err := parseStatement(text, Place{})
	if err != nil || got.commit != ledgertest.Commit || got.merge.Source != m.Source ||
		got.merge.FinishedOn != m.FinishedOn {
		t.Errorf("%+v, %v", got, err)
	}

	m.Source.SHA = ledgertest.Commit
	_, err = NewMergeStatement(ledgertest.Commit, m)
	ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
	m.Kind = "octopus"
	_, err = NewMergeStatement(ledgertest.Commit, m)
	ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
}

func TestParseMergeRefuses(t *testing.T) {
	const long = mergeTree + "cccccccccccccccccccccccc"
	for name, test := range map[string]struct{ old, new, field string }{
		"no repo":        {`"repo":"acme/api",`, ``, "predicate.repo"},
		"a bad repo":     {`"acme/api"`, `"acme"`, "predicate.repo"},
		"no kind":        {`"kind":"squash",`, ``, "predicate.kind"},
		"another kind":   {`"squash"`, `"octopus"`, "predicate.kind"},
		"no source":      {`"source":{"sha":"` + mergeSource + `"},`, ``, "predicate.source.sha"},
		"a short source": {mergeSource, "aaaaaaa", "predicate.source.sha"},
		"upper case":     {mergeSource, strings.ToUpper(mergeSource), "predicate.source.sha"},
		"no parent":      {`"parent":{"sha":"` + mergeParent + `"},`, ``, "predicate.parent.sha"},
		"parent as text": {`{"sha":"` + mergeParent + `"}`, `"` + mergeParent + `"`, "predicate.parent"},
		"the same":       {mergeParent, mergeSource, "predicate.parent.sha"},
		"no tree":        {`"tree":"` + mergeTree + `",`, ``, "predicate.tree"},
		"a SHA-256 tree": {mergeTree, long, "predicate.tree"},
		"a bad time":     {`"2026-11-20T09:00:00Z"`, `"yesterday"`, "predicate.startedOn"},
		"wrong case":     {`"kind"`, `"Kind"`, "predicate.kind"},
		"in the source":  {`{"sha":"` + mergeSource, `{"SHA":"` + mergeSource, "predicate.source.sha"},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Replace(mergeBody, test.old, test.new, 1)
			_, err := parseStatement([]byte(statementOf(aboutCommit, MergePredicateType, body)), Place{})
			ledgertest.WantCode(t, err, ledger.CodeInvalidStatement)
			if err != nil && !strings.Contains(err.Error(), "invalid "+test.field+":") {
				t.Errorf("error %q, want one about %s", err, test.field)
			}
		})
	}
}

// A claim cannot be about its own source or parent, or a commit of another hash function.
func TestMergeIsOfOtherCommits(t *testing.T) {
	m := Merge{Source: MergedCommit{mergeSource}, Parent: MergedCommit{mergeParent}}
	if err := m.checkCommit(mergeTree); err != nil {
		t.Error(err)
	}
	for commit, field := range map[string]string{mergeSource: "source.sha", mergeParent: "parent.sha",
		mergeTree + "cccccccccccccccccccccccc": "source.sha"} {
		if err := m.checkCommit(commit); err == nil || !strings.Contains(err.Error(), "predicate."+field) {
			t.Errorf("a claim about %s: %v, want an error about %s", commit, err, field)
		}
	}
}
