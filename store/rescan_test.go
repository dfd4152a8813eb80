package store

import (
	"cmp"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/backlog"
	"github.com/ledgerd/ledgerd/store/txn"
)

// After a change of policy, a re-scan of one tip does not move the commits that overlap
// with it. The job of the policy moves them when it reaches them, with the policy as the cause.
func TestRescanSkipsCommitsNotYetReevaluated(t *testing.T) {
	s, _ := openWithTips(t, Options{})
	setContract := func(text string) {
		contract, err := policy.Parse([]byte(text))
		must.OK(t, err)
		_, err = s.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
		must.OK(t, err)
	}
	setContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`)
	must.OK(t, s.Settle(t.Context()))
	twin{s}.recordSet(t, []*drawn{stated("ci", 1, "test:go", ledger.Pass)})
	state := func() ledger.Commit {
		c, err := s.Commit(t.Context(), "acme", "api", numbered(1))
		must.OK(t, err)
		return c
	}
	if c := state(); c.State != ledger.Promotable {
		t.Fatalf("before the re-scan: state is %s, want %s", c.State, ledger.Promotable)
	}

	setContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}],"radar":{"block":"LOW"}}`)
	var tip int64
	must.OK(t, s.db.Change(t.Context(), "", func(t *txn.Tx) error {
		if err := t.Row("SELECT commit_id FROM tips WHERE branch = 'one'").Scan(&tip); err != nil {
			return err
		}
		_, err := t.Exec("UPDATE tips SET policy_version = 0 WHERE commit_id = ?", tip)
		return cmp.Or(err, s.jobs.Later(t, 1, backlog.Settle, tip, ledger.Cause{Type: ledger.CauseRadar}))
	}))
	must.OK(t, s.SettleNext(t.Context(), &backlog.Job{Repo: 1, Task: backlog.Settle, Ref: tip, Org: 1}))
	if c := state(); c.State != ledger.Promotable {
		t.Errorf("after the re-scan of another tip: state is %s, want %s", c.State, ledger.Promotable)
	}
	must.OK(t, s.Settle(t.Context()))
	c := state()
	last := c.Transitions[len(c.Transitions)-1]
	if c.State != ledger.Attested || last.Cause.Type != ledger.CausePolicy {
		t.Errorf("after Settle: state is %s, cause %v; want %s, cause %s",
			c.State, last.Cause, ledger.Attested, ledger.CausePolicy)
	}
}
