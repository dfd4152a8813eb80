package store

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store/sqldb"
)

// A re-scan of one tip leaves the commits that overlap with it alone, until Evaluate
// has reached them under the new contract: none moves before everything that blocks
// it is known, and the contract is the cause.
func TestARescanLeavesCommitsThatAreNotEvaluatedYet(t *testing.T) {
	s, _ := openWithTips(t, Options{})
	setContract := func(text string) {
		contract, err := policy.Parse([]byte(text))
		check(t, err)
		_, err = s.SetPolicy(t.Context(), "acme", "api", contract, 0, "host")
		check(t, err)
	}
	setContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`)
	check(t, s.Settle(t.Context()))
	twin{s}.recordSet(t, []*drawn{say("ci", 1, "test:go", ledger.Pass)})
	state := func() ledger.Commit {
		c, err := s.Commit(t.Context(), "acme", "api", numbered(1))
		check(t, err)
		return c
	}
	if c := state(); c.State != ledger.Promotable {
		t.Fatalf("the commit is %s before", c.State)
	}

	setContract(`{"requirements":[{"state":"ATTESTED","predicate":"test:*"}],"radar":{"block":"LOW"}}`)
	check(t, s.db.Write(t.Context(), sqldb.Write{Do: func(c *sqldb.Conn) error {
		_, err := c.Exec("UPDATE tips SET policy_version = 0 WHERE branch = 'one'")
		return err
	}}))
	check(t, s.rescanMarked(t.Context()))
	if c := state(); c.State != ledger.Promotable {
		t.Errorf("the commit is %s after the re-scan of another", c.State)
	}
	check(t, s.Settle(t.Context()))
	c := state()
	last := c.Transitions[len(c.Transitions)-1]
	if c.State != ledger.Attested || last.Cause.Type != ledger.CausePolicy {
		t.Errorf("the commit is %s, moved by %v", c.State, last.Cause)
	}
}
