package store

import (
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// After a change of policy, a re-scan of one tip does not move the commits that overlap
// with it. Evaluate moves them when it reaches them, with the policy as the cause.
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
	must.OK(t, s.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		_, err := c.Exec("UPDATE tips SET policy_version = 0 WHERE branch = 'one'")
		return err
	}}))
	must.OK(t, s.rescanMarked(t.Context()))
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
