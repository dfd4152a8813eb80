package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// TestReplayOfDeliveries merges the branches of histories again, in each way that forges have. Somebody else reviews
// each branch before it is merged, and what git alone does not make of it. Of 50 branches, one is pushed to the
// mainline without a review. Exactly these commits are gaps of a deployment of the mainline, until they are reviewed.
func TestReplayOfDeliveries(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	testenv.Need(t, "git", "python3")
	gitrepotest.IgnoreConfig(t)
	r := newReplay(t)
	r.policy += `  - {state: DEPLOYED, predicate: "deploy:prod", signers: ["ou=cd,o=acme"], delivery: true}` + "\n"
	deployer := r.add("deployer", "cn=deployer,ou=cd,o=acme", "deploy:*,baseline:*")
	r.all(func(kind mergeKind, history, path string) { r.ship(deployer, kind, history, path) })
}

// ship merges the branches of a history in one way, and deploys the mainline.
func (r *replay) ship(deployer string, kind mergeKind, history, path string) {
	l := r.newLane(kind, newGitHistory(r.t, history, path), history+"-"+kind.name)
	s := &shipment{lane: l, seen: make(map[string]bool)}
	s.isByOthers = true
	started := time.Now()
	pulls, start := s.git.pulls(*replayMerges, kind.lengths...)
	s.forward(start)
	s.noted = nil
	r.org.ledgerd("environment", "baseline", "acme/"+s.repo, "prod", start, "--key", deployer)

	for n, p := range pulls {
		if !s.isPastReview(n) || !s.pushPastReview(n, p) {
			s.mergePull(n, p)
			s.reviewRest()
		}
		s.seen[s.git.tree(s.main)] = true
		isLast := n == len(pulls)-1 || n%*replayJob == *replayJob-1
		if isLast || kind.isQueue && n%maxQueue == maxQueue-1 {
			s.runJob(n)
			s.wantGaps()
		}
	}
	if s.pushes == 0 {
		r.t.Errorf("%s: nothing is pushed past review", s.repo)
	}
	s.deploy()
	r.t.Logf("%s: %d branches, %d pushed past review, %d commits reviewed that git does not merge, %v", s.repo,
		len(pulls), s.pushes, s.rest, time.Since(started).Round(time.Second))
}

// A shipment is a lane whose mainline is deployed.
type shipment struct {
	*lane
	// gaps has the commits that nobody has reviewed, oldest first.
	gaps   []string
	pushes int             // how many there were
	rest   int             // how many commits were reviewed on the mainline
	seen   map[string]bool // the trees that the mainline had
}

// maxReviewed is the number of branches of which one is pushed past review.
const maxReviewed = 50

// isPastReview reports whether a branch is pushed past review.
func (s *shipment) isPastReview(n int) bool {
	every := min(maxReviewed, max(2, *replayMerges/2))
	return n%every >= every/2 && s.pushes <= n/every
}

// pushPastReview pushes a change to the mainline without a review. Of every other one, the forge has the branch. It
// reports false if the mainline had the files before, so that their review is one of the change.
func (s *shipment) pushPastReview(n int, p pull) bool {
	files := s.git.tree(p.merged)
	if s.seen[files] {
		return false
	}
	tip := s.tipOf(n, p)
	if s.pushes%2 == 1 {
		s.pushed(merging{n: n}, tip)
	}
	s.forward(s.git.commit(files, "Pushed past review", s.main))
	s.made[p.merged] = s.main
	s.gaps = append(s.gaps, s.main)
	s.pushes++
	return true
}

// reviewRest reviews the commits since the last job to which git knows no reason why a review should carry.
func (s *shipment) reviewRest() {
	for _, c := range s.noted {
		if slices.Contains(s.gaps, c.commit) || s.rules.uncovered(c.commit) == "" {
			continue
		}
		s.rest++
		s.state("review", "reviewer", c.commit, true, s.before(c.commit))
	}
}

// before returns the commit of the mainline from which on a commit is reviewed.
func (s *shipment) before(commit string) string {
	if at := slices.Index(s.tips, commit); at > 0 {
		return s.tips[at-1]
	}
	return s.git.git("merge-base", s.tips[len(s.tips)-2], commit)
}

// wantGaps tests the mainline, and checks that the gaps of its deployment are those that nobody has reviewed. What is a
// gap and should be none is reviewed, so that a later answer has room for others.
func (s *shipment) wantGaps() {
	s.t.Helper()
	s.state("test", "ci", s.main, true, "")
	d, missed, wrong := s.compare()
	for end := time.Now().Add(maxSettle); len(missed)+len(wrong) > 0 && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		d, missed, wrong = s.compare()
	}

	if len(missed) > 0 {
		s.t.Errorf("%s: a deployment of %s has the gaps %+v, and not %s", s.repo, s.main, d.Gaps, missed)
	}
	for _, gap := range wrong {
		s.t.Errorf("%s: a deployment of %s has the gap %s (%s, parents %s): %s", s.repo, s.main, gap.Commit, gap.Subject,
			s.git.git("log", "-1", "--format=%P", gap.Commit), strings.Join(gap.Reasons, "; "))
		s.state("review", "reviewer", gap.Commit, true, s.git.git("rev-parse", gap.Commit+"^"))
	}
	if gate := s.gate(); gate.Reached && len(s.gaps) > 0 {
		s.t.Errorf("%s: the gate of %s is open over %s", s.repo, s.main, s.gaps)
	}
}

// compare asks what a deployment of the mainline ships. It returns the gaps that are missed, and those that should be
// none. The commit that is deployed is no gap: its own state says what it lacks.
func (s *shipment) compare() (d *ledger.Delivery, missed []string, wrong []ledger.Gap) {
	s.t.Helper()
	c, err := s.api.CommitFor(s.t.Context(), "acme", s.repo, s.main, "", "prod")
	must.OK(s.t, err)
	d = c.Delivery
	for _, sha := range s.gaps {
		isGap := slices.ContainsFunc(d.Gaps, func(g ledger.Gap) bool { return g.Commit == sha })
		if sha == s.main {
			isGap = c.State < ledger.Promotable
		}
		if !isGap {
			missed = append(missed, sha)
		}
	}
	for _, gap := range d.Gaps {
		if !slices.Contains(s.gaps, gap.Commit) {
			wrong = append(wrong, gap)
		}
	}
	return d, missed, wrong
}

// gate asks whether the mainline may be deployed.
func (s *shipment) gate() ledger.Gate {
	s.t.Helper()
	gate, err := s.api.Gate(s.t.Context(), "acme", s.repo, s.main, ledger.Promotable, "", "prod")
	must.OK(s.t, err)
	return gate
}

// deploy reviews the gaps, and deploys the mainline.
func (s *shipment) deploy() {
	s.t.Helper()
	for _, gap := range s.gaps {
		s.state("review", "reviewer", gap, true, s.git.git("rev-parse", gap+"^"))
	}
	s.gaps = nil
	s.wantGaps()
	gate := s.gate()
	for end := time.Now().Add(maxSettle); !gate.Reached && time.Now().Before(end); gate = s.gate() {
		time.Sleep(50 * time.Millisecond)
	}
	if !gate.Reached {
		s.t.Errorf("%s: the gate of %s is shut after all is reviewed: %+v", s.repo, s.main, gate)
	}

	s.attest("deploy:prod", "deployer", s.main, ledger.Pass, "")
	c, err := s.api.CommitFor(s.t.Context(), "acme", s.repo, s.main, "", "prod")
	must.OK(s.t, err)
	if base := c.Delivery.Base; c.State != ledger.Deployed || base == nil || base.Commit != s.main || base.IsBaseline {
		s.t.Errorf("%s: the deployment of %s does not count: it is %s, and %+v runs", s.repo, s.main, c.State, base)
	}
}
