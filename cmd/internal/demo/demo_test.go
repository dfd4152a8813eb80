package demo

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// The demo shows what it promises, by the API, outside a git work tree and in one.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("plays two stories")
	}
	t.Run("sample", func(t *testing.T) {
		t.Chdir(t.TempDir())
		d := play(t)
		if d.story.product != "parcels" || d.story.folder != "" {
			t.Errorf("outside a work tree: product %s from %q", d.story.product, d.story.folder)
		}
		checkPromises(t, d)
	})
	t.Run("work tree", func(t *testing.T) {
		t.Chdir(newWorkTree(t))
		d := play(t)
		if d.story.product != "shop" || d.story.people[0].Name != "Ann Example" {
			t.Errorf("the cast has product %s and %s", d.story.product, d.story.people[0].Name)
		}
		checkPromises(t, d)
	})
}

// A demo that is interrupted while it starts ends without an error, and leaves no files.
func TestDemoInterrupted(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Chdir(dir)
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 600 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		must.OK(t, Play(ctx, Options{Org: "demo", Listen: "127.0.0.1:0", Once: true, Out: io.Discard, Log: t.Output()}))
		cancel()
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("after %v: %v is left, %v", after, left, err)
		}
	}
}

// play plays the story, but not the live part.
func play(t *testing.T) *demo {
	t.Helper()
	o := Options{Org: "demo", Listen: "127.0.0.1:0", Out: io.Discard, Log: t.Output()}
	d := &demo{Options: o, printer: printer{terminal.NewScreen(o.Out)}, dir: t.TempDir(), began: time.Now()}
	must.OK(t, d.prepare(t.Context()))
	t.Cleanup(func() { must.OK(t, d.stop()) })
	must.OK(t, d.story.play(t.Context(), d.stage))
	d.introduce()
	t.Logf("ready after %v", time.Since(d.began))
	return d
}

// newWorkTree creates a git work tree with one commit in a folder shop.
func newWorkTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/shop"
	must.OK(t, os.Mkdir(dir, 0o755))
	must.OK(t, os.WriteFile(dir+"/go.mod", []byte("module shop\n"), 0o644))
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."},
		{"-c", "user.name=Ann Example", "-c", "user.email=ann@example.org", "commit", "-q", "-m", "api: open the shop"},
	} {
		command := exec.Command("git", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func checkPromises(t *testing.T, d *demo) {
	v := &visitor{t, d.stage.admin, d}
	t.Run("three weeks", v.checkTimes)
	t.Run("states", v.checkStates)
	t.Run("violations", v.checkViolations)
	t.Run("rollback", v.checkRollback)
	t.Run("carried evidence", v.checkCarried)
	t.Run("failing test and waiting review", v.checkBlocked)
	t.Run("overlaps", v.checkOverlaps)
	t.Run("webhooks", v.checkWebhooks)
	t.Run("logs", v.checkLogs)
}

// A visitor looks at the demo with the API.
type visitor struct {
	t   *testing.T
	api *client.Client
	*demo
}

func (v *visitor) commit(t *testing.T, c *commit) ledger.Commit {
	t.Helper()
	record, err := v.api.Commit(t.Context(), v.Org, c.in.name, c.sha)
	must.OK(t, err)
	return record
}

func (v *visitor) checkTimes(t *testing.T) {
	n := 0
	var first, last ledger.Time
	for _, r := range v.story.repos {
		commits := must.Get(client.Collect(v.api.Commits(t.Context(), v.Org, r.name, client.CommitFilter{}), 0))(t)
		n += len(commits)
		for _, c := range commits {
			if at := c.RegisteredAt; first == 0 || at < first {
				first = at
			}
			last = max(last, c.RegisteredAt)
			if c.CommittedAt.Sub(c.RegisteredAt).Abs() > time.Minute {
				t.Errorf("%s was written at %v and registered at %v", c.Message, c.CommittedAt, c.RegisteredAt)
			}
		}
	}

	if n < 40 || n != v.story.commits() || len(v.story.repos) != 3 {
		t.Errorf("%d commits in %d repos", n, len(v.story.repos))
	}
	if age := time.Since(first.Std()); age < 20*day || age > 22*day {
		t.Errorf("the first commit was registered %v ago", age)
	}
	if age := time.Since(last.Std()); age > hour {
		t.Errorf("the last commit was registered %v ago", age)
	}
	if lag := v.stage.lag.Load(); lag != 0 {
		t.Errorf("after the story, the clock is %v behind", time.Duration(lag))
	}
}

// All states are in use, and commits left one because of a policy and because evidence
// expired.
func (v *visitor) checkStates(t *testing.T) {
	var states []ledger.State
	var causes []ledger.CauseType
	for _, r := range v.story.repos {
		for _, c := range r.commits {
			if slices.Contains(v.story.sights.live, c) {
				continue
			}
			record := v.commit(t, c)
			states = append(states, record.State)
			for _, m := range record.Transitions {
				if m.To < m.From {
					causes = append(causes, m.Cause.Type)
				}
				if m.Cause.Type == ledger.CauseExpiry && time.Since(m.At.Std()) < 20*hour {
					t.Errorf("evidence for %s, which is valid for a week, expired at %v", c.subject, m.At)
				}
			}
		}
	}

	for s := ledger.Draft; s <= ledger.Deployed; s++ {
		if !slices.Contains(states, s) {
			t.Errorf("no commit is %s", s)
		}
	}
	for _, cause := range []ledger.CauseType{ledger.CausePolicy, ledger.CauseExpiry, ledger.CauseAttestation} {
		if !slices.Contains(causes, cause) {
			t.Errorf("no demotion by %s", cause)
		}
	}
}

func (v *visitor) checkViolations(t *testing.T) {
	list := must.Get(client.Collect(v.api.Violations(t.Context(), v.Org, client.ViolationFilter{}), 0))(t)
	if len(list) != 2 || list[0].Status != ledger.ViolationOpen {
		t.Fatalf("violations: %+v, want an open one and an older one", list)
	}
	if old := list[1]; old.Commit != v.story.sights.violation.sha || old.ClosedBy == nil ||
		old.ClosedBy.Type != ledger.ClosedByException {
		t.Errorf("violation %+v, want it closed by an exception", old)
	}

	active := 0
	for _, r := range v.story.repos {
		filter := client.ExceptionFilter{Active: true}
		exceptions := must.Get(client.Collect(v.api.Exceptions(t.Context(), v.Org, r.name, filter), 0))(t)
		for _, x := range exceptions {
			if left := time.Until(x.Until.Std()); left > 0 && left < day {
				active++
			}
		}
	}
	if active == 0 {
		t.Error("no exception ends soon")
	}
}

func (v *visitor) checkRollback(t *testing.T) {
	c := v.commit(t, v.story.sights.rollback)
	down := slices.ContainsFunc(c.Transitions, func(m ledger.Transition) bool {
		return m.From == ledger.Deployed && m.To < ledger.Deployed
	})
	if c.State == ledger.Deployed || !down {
		t.Errorf("the commit is %s after %+v", c.State, c.Transitions)
	}
}

func (v *visitor) checkCarried(t *testing.T) {
	c := v.commit(t, v.story.sights.squash)
	carried := 0
	for _, q := range c.Requirements {
		carried += len(q.Carried)
		for _, e := range q.Carried {
			if e.Commit != v.story.sights.squash.topic.sha {
				t.Errorf("%s is carried from %s", e.Predicate, e.Commit)
			}
		}
	}
	if c.State != ledger.Deployed || carried < 4 || c.Attested != 1 {
		t.Errorf("the squash is %s with %d attestations, and %d carried", c.State, c.Attested, carried)
	}
}

func (v *visitor) checkBlocked(t *testing.T) {
	failed := false
	for _, q := range v.commit(t, v.story.sights.failing).Requirements {
		failed = failed || len(q.FailedBy) > 0 && q.State == ledger.Attested
	}
	if !failed {
		t.Error("no requirement of the failing commit is blocked")
	}

	waiting := v.commit(t, v.story.sights.waiting)
	if waiting.State != ledger.Attested || time.Since(waiting.StateSince.Std()) < 3*day {
		t.Errorf("the waiting commit is %s since %v", waiting.State, waiting.StateSince)
	}
	for _, q := range waiting.Requirements {
		if q.State == ledger.Promotable && q.Applies && q.Met == (q.Predicate == "review:*") {
			t.Errorf("requirement %s of the waiting commit: %s", q.Predicate, q.Reason)
		}
	}
}

func (v *visitor) checkOverlaps(t *testing.T) {
	pairs, err := client.Collect(v.api.Overlaps(t.Context(), v.Org, v.story.product, client.OverlapFilter{}), 0)
	must.OK(t, err)
	levels := make(map[radar.Level]int)
	sameAuthor := 0
	for _, p := range pairs {
		levels[p.Level]++
		if p.SameAuthor {
			sameAuthor++
		}
	}
	enough := levels[radar.High] >= 3 && levels[radar.Medium] > 0 && levels[radar.Low] > 0 && sameAuthor > 0
	v.checkLanded(t)
	if !enough || len(pairs) > 15 {
		t.Errorf("overlaps: %v, %d of them of one author", levels, sameAuthor)
	}
}

// Branches that were merged are not in flight.
func (v *visitor) checkLanded(t *testing.T) {
	for _, r := range v.story.repos {
		merged := make(map[string]bool)
		for _, c := range r.commits {
			if c.topic != nil {
				merged[c.topic.sha] = true
			}
		}
		filter := client.CommitFilter{InFlight: true}
		flying := must.Get(client.Collect(v.api.Commits(t.Context(), v.Org, r.name, filter), 0))(t)
		for _, c := range flying {
			if merged[c.SHA] {
				t.Errorf("%s is merged and in flight", c.Branch)
			}
		}
	}
}

// The link to a job's log works.
func (v *visitor) checkLogs(t *testing.T) {
	filter := client.AttestationFilter{Predicate: v.story.test}
	list := must.Get(client.Collect(v.api.Attestations(t.Context(), v.Org, v.story.product, filter), 1))(t)
	record, err := v.api.Attestation(t.Context(), v.Org, v.story.product, list[0].ID)
	must.OK(t, err)
	response, err := http.Get(record.Verification.RunURL)
	must.OK(t, err)
	defer response.Body.Close()
	log := must.Get(io.ReadAll(response.Body))(t)
	if response.StatusCode != http.StatusOK || !strings.Contains(string(log), v.story.test) {
		t.Errorf("%s: %s\n%s", record.Verification.RunURL, response.Status, log)
	}
}

func (v *visitor) checkWebhooks(t *testing.T) {
	hooks := must.Get(client.Collect(v.api.Webhooks(t.Context(), v.Org, v.story.product), 0))(t)
	if len(hooks) != 2 {
		t.Fatalf("%d webhooks", len(hooks))
	}
	for _, h := range hooks {
		works := h.Description == "Posts to the team's chat"
		if !h.Active || (h.FailingSince == 0) != works {
			t.Errorf("webhook %q: active %t, failing since %v", h.Description, h.Active, h.FailingSince)
		}
		status := outbound.DeliveryPending
		if works {
			status = outbound.DeliverySucceeded
		}
		list := v.api.Deliveries(t.Context(), v.Org, v.story.product, h.ID, client.DeliveryFilter{})
		deliveries := must.Get(client.Collect(list, 0))(t)
		for _, delivery := range deliveries {
			if delivery.Status != status {
				t.Errorf("delivery of %q is %s", h.Description, delivery.Status)
			}
		}
		if len(deliveries) < 5 {
			t.Errorf("%d deliveries to %q", len(deliveries), h.Description)
		}
	}

	disabled := must.Get(client.Collect(v.api.Webhooks(t.Context(), v.Org, v.story.product+"-web"), 0))(t)
	if len(disabled) != 1 || disabled[0].Active || disabled[0].DisabledReason == "" {
		t.Errorf("webhooks of the second repo: %+v, want a disabled one", disabled)
	}
}
