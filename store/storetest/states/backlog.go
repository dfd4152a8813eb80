package states

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
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/store"
	"github.com/ledgerd/ledgerd/store/storetest"
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
	n := outbound.NewWebhook{URL: "https://ci.example.com/ledger"}
	must.OK(t, n.Check())
	w, err := fx.CreateWebhook(t.Context(), "acme", "api", n, outbound.NewWebhookSecret())
	must.OK(t, err)
	c := &crowd{fx, w.ID}
	fx.SetContract(agingPolicy)
	fx.NewSigner("cn=ci,ou=build,o=acme").Attest(sha(1), "scan:image", ledger.Pass)
	fx.WantState(sha(1), ledger.Promotable)

	must.Get(fx.CreateOrg(t.Context(), "crowd"))(t)
	must.Get(fx.CreateRepo(t.Context(), "crowd", ledger.NewRepo{Name: "repo"}, "host"))(t)
	fx.Database.Exec(t, fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO commits (id, repo_id, sha, state, state_since, registered_at, policy_version)
SELECT 1000 + n, `+crowdRepo+`, '%036d' || (1000 + n), 0, 1, 1, 1 FROM numbers`, commits, 0))
	fx.Database.Exec(t, fmt.Sprintf(
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
	c.T.Helper()
	c.claim()
	ctx, cancel := context.WithCancel(c.T.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { c.Work(ctx) })
	running.Go(func() { during(ctx) })
	time.Sleep(time.Second)

	c.Clock.Advance(time.Hour)
	begun := time.Now()
	for time.Since(begun) < patience {
		states := storetest.EventsOf[ledger.StateEvent](c.Fixture)
		if last := states[len(states)-1]; last.Cause.Type == ledger.CauseExpiry && c.claim() > 0 {
			c.T.Logf("settled after %v", time.Since(begun))
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.T.Errorf("the commit of acme is not settled after %v", patience)
}

// claim claims the deliveries that are due to acme, and returns their number.
func (c *crowd) claim() int {
	c.T.Helper()
	_, due, err := c.Claim(c.T.Context(), c.hook, 100, 30*time.Second)
	must.OK(c.T, err)
	return len(due)
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
	c.Database.Exec(t, fmt.Sprintf("UPDATE commits SET expires = %d WHERE repo_id = "+crowdRepo, due))
	c.Database.Exec(t, fmt.Sprintf(`
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
VALUES (`+crowdRepo+`, 'expire', 0, `+crowdOrg+`, '', '', 0, %d, %d)`, due, due))
	c.Database.Exec(t, "UPDATE policies SET version = 3 WHERE version = 2 AND repo_id = "+crowdRepo)
	c.CloseAll() // it has read the contract
	c.Open(store.Options{})
	c.Other = nil

	c.wantExpiry(func(context.Context) {})
	err := c.Settle(t.Context())
	if err == nil || !strings.Contains(err.Error(), "expire in org ") {
		t.Errorf("Settle returned %v, want what failed", err)
	}
	c.wantFailing(1)

	c.Database.Exec(t, "UPDATE policies SET version = 2 WHERE version = 3 AND repo_id = "+crowdRepo)
	must.OK(t, c.Settle(t.Context()))
	c.wantFailing(0)
}

// wantFailing checks how many jobs of crowd are said to fail, and what its repo says.
func (c *crowd) wantFailing(want int64) {
	c.T.Helper()
	n := int64(0)
	for _, b := range must.Get(c.Backlog(c.T.Context()))(c.T) {
		if b.Org == "crowd" {
			n += b.Failing
		}
	}
	if n != want {
		c.T.Errorf("%d jobs of crowd are said to fail, want %d", n, want)
	}

	u := must.Get(c.Repo(c.T.Context(), "crowd", "repo"))(c.T).Unsettled
	if isFailing := u != nil && u.Failing; isFailing != (want > 0) {
		c.T.Errorf("the repo says that it is unsettled: %+v", u)
	}
}

// A backlog of any length of an org holds up nobody else.
func (s suite) TestJobsOfAnOrgHoldUpNobodyElse(t *testing.T) {
	c := s.newCrowd(t, 1)
	n := testenv.Pick(1000, 10_000, 1_000_000)
	c.Database.Exec(t, fmt.Sprintf(`
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
INSERT INTO backlog (repo_id, kind, ref, org_id, cause_type, cause_id, position, since, not_before)
SELECT `+crowdRepo+`, 'tree', n, `+crowdOrg+`, 'carry', '', 0, 0, 0 FROM numbers`, n))
	c.wantExpiry(func(context.Context) {})
	c.Database.Exec(t, "DELETE FROM backlog WHERE org_id = "+crowdOrg)
}
