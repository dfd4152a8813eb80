package demo

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// The contracts of the story. ORG stands for the org.
const (
	// strict asks for CI's own tests, for a review by another developer than the author, and
	// for a deployment by the platform's bot.
	strict = `{"requirements": [
  {"name": "tests", "state": "ATTESTED", "predicate": "test:*", "signers": ["ou=build,o=ORG"], "carry": ["tree"]},
  {"name": "lint", "state": "ATTESTED", "predicate": "lint:*", "signers": ["ou=build,o=ORG"], "carry": ["tree"]},
  {"name": "review", "state": "PROMOTABLE", "predicate": "review:*", "signers": ["ou=dev,o=ORG"],
   "exclude_author": "proven", "distinct_from": ["ATTESTED"], "carry": ["tree"]},
  {"name": "deploy", "state": "DEPLOYED", "predicate": "deploy:prod", "signers": ["ou=platform,o=ORG"],
   "distinct_from": ["PROMOTABLE"]}],
 "exceptions": {"signers": ["ou=security,o=ORG"], "max_duration": "72h"},
 "radar": {"block": "HIGH"}}`

	// stricter asks for a scan of the dependencies as well.
	stricter = `{"requirements": [
  {"name": "tests", "state": "ATTESTED", "predicate": "test:*", "signers": ["ou=build,o=ORG"], "carry": ["tree"]},
  {"name": "lint", "state": "ATTESTED", "predicate": "lint:*", "signers": ["ou=build,o=ORG"], "carry": ["tree"]},
  {"name": "dependencies", "state": "PROMOTABLE", "predicate": "audit:*", "signers": ["ou=build,o=ORG"],
   "carry": ["tree"]},
  {"name": "review", "state": "PROMOTABLE", "predicate": "review:*", "signers": ["ou=dev,o=ORG"],
   "exclude_author": "proven", "distinct_from": ["ATTESTED"], "carry": ["tree"]},
  {"name": "deploy", "state": "DEPLOYED", "predicate": "deploy:prod", "signers": ["ou=platform,o=ORG"],
   "distinct_from": ["PROMOTABLE"]}],
 "exceptions": {"signers": ["ou=security,o=ORG"], "max_duration": "72h"},
 "radar": {"block": "HIGH"}}`

	// weekly asks for tests that are no older than a week.
	weekly = `{"requirements": [
  {"name": "tests", "state": "ATTESTED", "predicate": "test:*", "signers": ["ou=build,o=ORG"], "max_age": "7d",
   "carry": ["tree"]},
  {"name": "review", "state": "PROMOTABLE", "predicate": "review:*", "signers": ["ou=dev,o=ORG"],
   "exclude_author": "proven", "distinct_from": ["ATTESTED"], "carry": ["tree"]},
  {"name": "deploy", "state": "DEPLOYED", "predicate": "deploy:prod", "signers": ["ou=platform,o=ORG"],
   "distinct_from": ["PROMOTABLE"]}],
 "exceptions": {"signers": ["ou=security,o=ORG"], "max_duration": "72h"}}`
)

// length is how long before its end the story begins.
const length = 21 * day

func newStory(c cast, end time.Time) *story {
	s := &story{cast: c, end: end, random: rand.New(rand.NewPCG(1, 1)), run: 1840}
	s.addService()
	s.addWeb()
	s.addDeploy()
	slices.SortStableFunc(s.steps, func(a, b step) int { return int(b.ago - a.ago) })
	return s
}

// apply changes the contract of a repo.
func (s *story) apply(ago time.Duration, repo, contract string) {
	s.at(ago, func(ctx context.Context, st *stage) error { return st.apply(ctx, repo, contract) })
}

// grant adds an exception of the security team for a commit, which ends at another time.
func (s *story) grant(ago time.Duration, c *commit, requirement, reason string, until time.Duration) {
	s.at(ago, func(ctx context.Context, st *stage) error {
		return st.grant(ctx, c, requirement, reason, s.end.Add(-until))
	})
}

// subscribe adds a webhook whose receiver responds with a status.
func (s *story) subscribe(ago time.Duration, repo, path, description string, status int) {
	s.at(ago, func(ctx context.Context, st *stage) error {
		_, err := st.subscribe(ctx, repo, path, description, status)
		return err
	})
}

// The checks of CI. The argument is the status of the tests.

func (s *story) checks(tests ledger.Status) []check {
	return []check{
		{s.lint, ledger.Pass, 20 * time.Second, 50 * time.Second},
		{"build:docker", ledger.Pass, time.Minute, 3 * time.Minute},
		{s.test, tests, 2 * time.Minute, 6 * time.Minute},
	}
}

func (s *story) audited(tests ledger.Status) []check {
	return append(s.checks(tests), check{"audit:dependencies", ledger.Pass, 8 * time.Second, 15 * time.Second})
}

// addService adds the story of the first repo.
func (s *story) addService() {
	p := s.repo(s.product, s.tasks, s.files)
	at, _ := s.files.spots()

	first := p.begin(20*day+20*hour, 0)
	s.check(first, s.checks(ledger.Pass)...)
	s.review(20*day+18*hour, first, 1, ledger.Pass)
	s.deploy(20*day+17*hour, first, deployer(), ledger.Pass, "")
	s.apply(20*day, p.name, strict)

	s.addMerges(p, at)
	s.apply(7*day+12*hour, p.name, stricter)
	s.addRollback(p, at)
	s.addNight(p, at)

	s.subscribe(2*day, p.name, "/chat", "Posts to the team's chat", http.StatusNoContent)
	s.subscribe(26*hour, p.name, "/pager", "Pages the person on call", http.StatusServiceUnavailable)
	s.addFlight(p, at)
	s.sights.live = []*commit{p.next(1, line(at.others[0], 0.5)), p.next(3, line(at.others[1], 0.2))}
}

// addMerges adds branches that are merged as they should be: the evidence of each one
// carries to its squash, which has the same files.
func (s *story) addMerges(p *project, at spots) {
	a := p.branch(1)
	c := a.push(19*day+3*hour, "", line(at.others[0], 0.2), line(at.others[1], 0.7))
	s.check(c, s.checks(ledger.Pass)...)
	s.review(19*day, c, 2, ledger.Pass)
	s.deploy(18*day+20*hour, a.squash(18*day+22*hour), deployer(), ledger.Pass, "")

	b := p.branch(2) // its tests fail at first
	c = b.push(17*day+4*hour, "", line(at.others[1], 0.4))
	s.check(c, s.checks(ledger.Fail)...)
	c = b.push(16*day+6*hour, "Fix the tests", line(at.others[1], 0.45))
	s.check(c, s.checks(ledger.Pass)...)
	s.review(16*day+2*hour, c, 0, ledger.Pass)
	s.deploy(15*day+20*hour, b.squash(16*day+hour), deployer(), ledger.Pass, "")

	b = p.branch(3)
	c = b.push(13*day+5*hour, "", line(at.others[2], 0.3))
	s.check(c, s.checks(ledger.Pass)...)
	s.review(12*day+22*hour, c, 1, ledger.Pass)
	s.deploy(12*day+19*hour, b.squash(12*day+20*hour), deployer(), ledger.Pass, "")

	b = p.branch(4) // its first review asks for changes
	c = b.push(11*day, "", line(at.others[3], 0.3))
	s.check(c, s.checks(ledger.Pass)...)
	s.review(10*day+20*hour, c, 0, ledger.Fail)
	c = b.push(10*day+6*hour, "Say it in plainer words", line(at.others[3], 0.6))
	s.check(c, s.checks(ledger.Pass)...)
	s.review(10*day, c, 0, ledger.Pass)
	s.deploy(9*day+18*hour, b.squash(9*day+20*hour), deployer(), ledger.Pass, "")
}

// addNight adds a fix that was deployed at night without a review, which the security team
// excused the next morning, for a time that ends soon.
func (s *story) addNight(p *project, at spots) {
	c := p.branch(0).push(56*hour, "", line(at.others[0], 0.8))
	s.check(c, s.audited(ledger.Pass)...)
	s.deploy(55*hour, c, deployer(), ledger.Pass, "INC-42: customers cannot pay")
	s.sights.violation = c

	const reason = "INC-42: customers could not pay, and nobody was awake to review"
	s.grant(47*hour, c, "review", reason, -8*hour)
	s.grant(47*hour-minute, c, "deploy", reason, -8*hour)
}

// addRollback adds a deployment that was rolled back, and of its fix, which is in
// production now.
func (s *story) addRollback(p *project, at spots) {
	b := p.branch(3)
	c := b.push(6*day+4*hour, "", line(at.others[2], 0.5))
	s.check(c, s.audited(ledger.Pass)...)
	s.review(5*day+22*hour, c, 1, ledger.Pass)
	c = b.squash(5*day + 20*hour)
	s.deploy(5*day+18*hour, c, deployer(), ledger.Pass, "")
	s.deploy(5*day+17*hour, c, deployer(), ledger.Fail, "5 % of requests failed: rolled back")
	s.sights.rollback = c

	b = p.branch(3)
	c = b.push(5*day+2*hour, "", line(at.others[2], 0.52))
	s.check(c, s.audited(ledger.Pass)...)
	s.review(4*day+20*hour, c, 4, ledger.Pass)
	c = b.squash(4*day + 18*hour)
	s.deploy(4*day+17*hour, c, deployer(), ledger.Pass, "")
	s.sights.squash = c
}

// addFlight adds the branches that are in flight now, with their overlaps.
func (s *story) addFlight(p *project, at spots) {
	waiting := p.branch(1).push(3*day+4*hour, "", line(at.busy, 0.3))
	s.check(waiting, s.audited(ledger.Pass)...)
	s.sights.waiting = waiting

	blocked := p.branch(2).push(2*day+5*hour, "", line(at.busy, 0.3)) // the same line
	s.check(blocked, s.audited(ledger.Pass)...)
	s.review(2*day+hour, blocked, 3, ledger.Pass)

	ready := p.branch(4) // near that line; its squash is not deployed
	c := ready.push(40*hour, "", line(at.busy, 0.42))
	s.check(c, s.audited(ledger.Pass)...)
	s.review(34*hour, c, 0, ledger.Pass)
	ready.squash(30 * hour)

	s.sights.failing = p.branch(0).push(28*hour, "", line(at.others[3], 0.8))
	s.check(s.sights.failing, s.checks(ledger.Fail)...)

	c = p.branch(3).push(22*hour, "", remove(at.doomed))
	s.check(c, s.audited(ledger.Pass)...)
	c = p.branch(1).push(9*hour, "", line(at.doomed, 0.5)) // which the branch before deletes
	s.check(c, s.audited(ledger.Pass)...)
	s.review(7*hour, c, 5, ledger.Fail)

	c = p.branch(5).push(5*hour, "", line(at.sibling, 0.2)) // in the folder of the busy file
	s.check(c, s.checks(ledger.Pass)[:2]...)
	c = p.branch(2).push(3*hour, "", line(at.busy, 0.3)) // two of one author
	s.check(c, s.checks(ledger.Pass)...)
	p.branch(4).push(25*minute, "", line(at.others[1], 0.9))
}

// addWeb adds the story of the second repo, whose end-to-end tests run in shards.
func (s *story) addWeb() {
	p := s.repo(s.product+"-web", webTasks(), webFiles())
	shards := func(failing ...int) []check {
		list := []check{{"lint:eslint", ledger.Pass, 20 * time.Second, 40 * time.Second}}
		for i, name := range []string{"test:e2e/1", "test:e2e/2", "test:e2e/3", "test:e2e/4"} {
			list = append(list, check{name, ledger.Pass, 3 * time.Minute, 5 * time.Minute})
			for _, n := range failing {
				if n == i+1 {
					list[n].status = ledger.Fail
				}
			}
		}
		return list
	}

	first := p.begin(20*day+12*hour, 5)
	s.check(first, shards()...)
	s.review(20*day+10*hour, first, 0, ledger.Pass)
	s.deploy(20*day+9*hour, first, deployer(), ledger.Pass, "")
	s.apply(14*day, p.name, weekly)

	b := p.branch(5)
	c := b.push(12*day, "", line("src/pages/Track.tsx", 0.3), line("src/components/Map.tsx", 0.5))
	s.check(c, shards()...)
	s.review(11*day+20*hour, c, 4, ledger.Pass)
	s.deploy(11*day+18*hour, b.squash(11*day+19*hour), deployer(), ledger.Pass, "")

	c = p.branch(4).push(8*day+hour, "", line("src/components/Address.tsx", 0.4)) // nobody merges it
	s.check(c, shards()...)
	s.review(7*day+20*hour, c, 5, ledger.Pass)
	s.subscribe(7*day+21*hour, p.name, "/status-page", "Updates the old status page", http.StatusGone)

	c = p.branch(5).push(2*day, "", line("src/pages/Returns.tsx", 0.3))
	s.check(c, shards(3)...)
	s.grant(44*hour, c, "tests", "The upload test fails on the old browser, which we drop on Friday", -6*hour)
	s.review(43*hour, c, 0, ledger.Pass)

	c = p.branch(1).push(26*hour, "", line("src/pages/Checkout.tsx", 0.4))
	s.check(c, shards()...)
	c = p.branch(0).push(6*hour, "", line("src/pages/Checkout.tsx", 0.6), line("src/pages/Track.tsx", 0.9))
	s.check(c, shards(2, 4)...)
	p.branch(5).push(55*minute, "", line("src/lib/format.ts", 0.5))
}

// addDeploy adds the story of the third repo, where somebody deploys what they may not.
func (s *story) addDeploy() {
	p := s.repo(s.product+"-deploy", deployTasks(), deployFiles())
	plan := func() []check { return []check{{"test:plan", ledger.Pass, 30 * time.Second, 50 * time.Second}} }

	first := p.begin(19*day+6*hour, 4)
	s.check(first, plan()...)
	s.review(19*day+5*hour, first, 2, ledger.Pass)
	s.deploy(19*day+4*hour, first, deployer(), ledger.Pass, "")

	b := p.branch(4)
	c := b.push(10*day+3*hour, "", line("prod/values.yaml", 0.1))
	s.check(c, plan()...)
	s.review(10*day, c, 3, ledger.Pass)
	s.deploy(9*day+22*hour, b.squash(9*day+23*hour), deployer(), ledger.Pass, "")

	c = p.branch(2).push(15*hour, "", line("prod/firewall.yaml", 0.5))
	s.check(c, plan()...)
	s.deploy(14*hour, c, developer(s.people[2]), ledger.Pass, "The printers are offline")

	c = p.branch(3).push(8*hour, "", line("prod/values.yaml", 0.3))
	s.check(c, plan()...)
	s.review(4*hour, c, 4, ledger.Pass)
	p.branch(4).push(2*hour, "", line("prod/values.yaml", 0.3)) // the same line
}
