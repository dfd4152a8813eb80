package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
)

// patience is how long a test waits for what happens within a second on an idle machine.
const patience = time.Minute

// agingPolicy has a scan count for an hour.
const agingPolicy = `{"requirements":[{"state":"ATTESTED","predicate":"scan:*","max_age":"1h"}],
"radar":{"enabled":false}}`

// The row ids of the org crowd and of its repo.
const (
	crowdOrg  = "(SELECT id FROM orgs WHERE name = 'crowd')"
	crowdRepo = "(SELECT id FROM repos WHERE name = 'repo')"
)

// A crowd is a second org, crowd, with a repo and commits, besides acme, in which a commit expires.
type crowd struct {
	*fixture
	hook string // of acme/api
}

func (s suite) newCrowd(t *testing.T, commits int) *crowd {
	fx := s.newFixture(t)
	c := &crowd{fx, fx.webhook().ID}
	fx.setPolicyText(agingPolicy)
	fx.signer("cn=ci,ou=build,o=acme").attest(sha(1), "scan:image", ledger.Pass)
	fx.wantState(sha(1), ledger.Promotable)

	must.Get(fx.CreateOrg(t.Context(), "crowd"))(t)
	must.Get(fx.CreateRepo(t.Context(), "crowd", ledger.NewRepo{Name: "repo"}, "host"))(t)
	fx.database.Exec(t, fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO commits (id, repo_id, sha, state, state_since, registered_at, policy_version)
SELECT 1000 + n, `+crowdRepo+`, '%036d' || (1000 + n), 0, 1, 1, 1 FROM numbers`, commits, 0))
	fx.database.Exec(t, fmt.Sprintf(
		"INSERT INTO repo_states (repo_id, state, commits) VALUES ("+crowdRepo+", 0, %d)", commits))
	return c
}

// setPolicy sets a policy of the crowd. A number makes it another one.
func (c *crowd) setPolicy(ctx context.Context, number int) error {
	text := fmt.Sprintf(`{"requirements":[{"state":"ATTESTED","predicate":"test:%d"}]}`, number)
	contract, err := policy.Parse([]byte(text))
	if err != nil {
		return err
	}
	_, err = c.SetPolicy(ctx, "crowd", "repo", contract, 0, "host")
	return err
}

// wantExpiry advances the clock until the commit of acme expires, and checks that its state, event and delivery
// follow while crowd does something. It logs how long that took.
func (c *crowd) wantExpiry(during func(context.Context)) {
	c.t.Helper()
	c.claim(c.hook, 100)
	ctx, cancel := context.WithCancel(c.t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { c.Work(ctx) })
	running.Go(func() { during(ctx) })
	time.Sleep(time.Second)

	c.clock.advance(time.Hour)
	begun := time.Now()
	for time.Since(begun) < patience {
		states := eventsOf[ledger.StateEvent](c.fixture)
		if last := states[len(states)-1]; last.Cause.Type == ledger.CauseExpiry && len(c.claim(c.hook, 100)) > 0 {
			c.t.Logf("settled after %v", time.Since(begun))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Errorf("the commit of acme is not settled after %v", patience)
}

// An org that changes a policy all the time, of a repo with many commits, does not hold up the others.
func (s suite) TestPoliciesOfAnOrgHoldUpNobodyElse(t *testing.T) {
	c := s.newCrowd(t, testenv.Pick(400, 4000, 4000))
	c.wantExpiry(func(ctx context.Context) {
		for n := 0; ctx.Err() == nil; n++ {
			if err := c.setPolicy(ctx, n); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Second / 17)
		}
	})
}

// Commits whose states cannot be derived hold up nobody, and are tried again.
func (s suite) TestWhatFailsHoldsUpNobodyElse(t *testing.T) {
	c := s.newCrowd(t, 100)
	must.OK(t, c.setPolicy(t.Context(), 1))
	must.OK(t, c.Settle(t.Context()))
	due := c.Now() + 1000
	c.database.Exec(t, fmt.Sprintf("UPDATE commits SET expires = %d WHERE repo_id = "+crowdRepo, due))
	c.database.Exec(t, fmt.Sprintf(`
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
VALUES (`+crowdRepo+`, 'expire', 0, `+crowdOrg+`, '', '', 0, %d, %d)`, due, due))
	c.database.Exec(t, "UPDATE policies SET version = 3 WHERE version = 2 AND repo_id = "+crowdRepo)
	c.closeAll() // it has read the contract
	c.open(store.Options{})
	c.other = nil

	c.wantExpiry(func(context.Context) {})
	err := c.Settle(t.Context())
	if err == nil || !strings.Contains(err.Error(), "expire in org ") {
		t.Errorf("Settle returned %v, want what failed", err)
	}
	c.wantFailing(1)

	c.database.Exec(t, "UPDATE policies SET version = 2 WHERE version = 3 AND repo_id = "+crowdRepo)
	must.OK(t, c.Settle(t.Context()))
	c.wantFailing(0)
}

// wantFailing checks how many jobs of crowd are said to fail, and what its repo says.
func (c *crowd) wantFailing(want int64) {
	c.t.Helper()
	n := int64(0)
	for _, b := range must.Get(c.Backlog(c.t.Context()))(c.t) {
		if b.Org == "crowd" {
			n += b.Failing
		}
	}
	if n != want {
		c.t.Errorf("%d jobs of crowd are said to fail, want %d", n, want)
	}

	u := must.Get(c.Repo(c.t.Context(), "crowd", "repo"))(c.t).Unsettled
	if isFailing := u != nil && u.Failing; isFailing != (want > 0) {
		c.t.Errorf("the repo says that it is unsettled: %+v", u)
	}
}

// A backlog of any length of an org holds up nobody else.
func (s suite) TestJobsOfAnOrgHoldUpNobodyElse(t *testing.T) {
	c := s.newCrowd(t, 1)
	n := testenv.Pick(1000, 10_000, 1_000_000)
	c.database.Exec(t, fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT `+crowdRepo+`, 'tree', n, `+crowdOrg+`, 'carry', '', 0, 0, 0 FROM numbers`, n))
	c.wantExpiry(func(context.Context) {})
	c.database.Exec(t, "DELETE FROM backlog WHERE org_id = "+crowdOrg)
}
