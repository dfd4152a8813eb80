package delivery

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// people write and review commits. Some of them test.
func people() []string { return []string{"max", "tom", "rita", "sue", "ci"} }

// A drawing draws a history.
type drawing struct {
	*teller
	random   *rand.Rand
	mainline []string // the oldest first
	branches []*branch
}

// A branch is a topic, or a hotfix.
type branch struct {
	since, head string // where it was built on, and its newest commit
	commits     []string
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// one returns true once in n times.
func (d *drawing) one(n int) bool { return d.random.IntN(n) == 0 }

func (d *drawing) person() string { return pick(d.random, people()...) }

// drawRules draws what a contract asks.
func drawRules(random *rand.Rand) rules {
	one := func(n int) bool { return random.IntN(n) == 0 }
	r := rules{threshold: pick(random, 1, 1, 1, 2), proven: one(3), distinct: one(3), byTree: one(2), byMerge: !one(3),
		testsByTree: one(2)}
	r.authors = !r.proven && one(6)
	if one(3) {
		r.reviews = "bills"
	}
	if one(3) {
		r.bills = pick(random, "bills", "web")
	}
	r.signed = !one(3)
	return r
}

// draw lets things happen in a repo.
func draw(t *teller, random *rand.Rand) {
	d := &drawing{teller: t, random: random}
	d.push()
	for range 1 + random.IntN(20) {
		d.step()
	}
	if d.one(2) {
		d.ship(d.tip())
	}
}

// step lets something happen.
func (d *drawing) step() {
	pick(d.random,
		d.push, d.push, d.push, d.revert, d.build, d.build, d.build, d.update, d.merge, d.merge, d.merge, d.merge, d.claimAny,
		d.reviewAny, d.reviewAny, d.reviewBranch, d.reviewBranch, d.reject, d.testAny, d.except, d.learn,
		d.deployTip, d.deployTip, d.deployAny, d.deployBranch, d.release, d.release, d.release, d.rollBack, d.rollBack,
		d.setBaseline, d.compareAny,
	)()
}

// tip returns the newest commit of the mainline.
func (d *drawing) tip() string { return d.mainline[len(d.mainline)-1] }

// onMainline returns a commit of the mainline, most often a new one.
func (d *drawing) onMainline() string {
	n := len(d.mainline)
	return d.mainline[n-1-min(d.random.IntN(n), d.random.IntN(n))]
}

// any returns any commit.
func (d *drawing) any() string {
	if len(d.branches) > 0 && d.one(3) {
		return pick(d.random, pick(d.random, d.branches...).commits...)
	}
	return d.onMainline()
}

// add makes a commit, and has the ledger learn of it, most often with its object.
func (d *drawing) add(tree int, parents ...string) string {
	c := d.commit(d.person(), tree, parents...)
	if c.hasPaths = !d.one(12); c.hasPaths {
		c.paths = pick(d.random, []string{"web"}, []string{"web"}, []string{"bills"}, []string{"bills", "web"})
	}
	switch {
	case d.one(20):
		c.hasPaths = false
		d.note("%s is not sent", c.name)
	case d.one(20):
		d.register(c, false)
	case d.one(6):
		c.hasPaths = false
		d.send(c)
	default:
		d.register(c, true)
	}
	return c.name
}

// push adds a commit to the mainline, which is reviewed most often.
func (d *drawing) push() {
	name := ""
	if len(d.mainline) > 0 {
		name = d.add(0, d.tip())
	} else {
		name = d.add(0)
	}
	d.land(name)
	if !d.one(4) {
		d.review(name, pick(d.random, append(d.parents(name), d.base(name))...))
	}
}

func (d *drawing) parents(name string) []string { return slices.Clone(d.commits[name].parents) }

// review has somebody review a commit, once or twice.
func (d *drawing) review(name, base string) {
	for range pick(d.random, 1, 1, d.rules.threshold) {
		d.say(statement{by: d.person(), verb: approves, commit: name, on: base})
	}
}

func (d *drawing) reviewAny() {
	name := d.any()
	d.review(name, d.base(name))
}

// base returns a base of a review of a commit, or "".
func (d *drawing) base(name string) string {
	switch {
	case d.one(6):
		return ""
	case d.one(10):
		if base := d.any(); base != name {
			return base
		}
	}

	base := name
	for range 1 + min(d.random.IntN(5), d.random.IntN(5)) {
		if parents := d.parents(base); len(parents) > 0 {
			base = pick(d.random, parents...)
		}
	}
	if base == name {
		return ""
	}
	return base
}

// reject has somebody reject a commit, most often one that they have reviewed or another one reviews later.
func (d *drawing) reject() {
	name := d.any()
	d.say(statement{by: d.person(), verb: rejects, commit: name, on: d.base(name)})
}

func (d *drawing) except() {
	d.say(statement{by: pick(d.random, boss, boss, boss, "max"), verb: excuses, commit: d.any(),
		of: pick(d.random, "review", "review", "go", "prod")})
}

// learn has the ledger learn of a commit that it does not know, or knows by its object alone.
func (d *drawing) learn() {
	for _, name := range slices.Sorted(maps.Keys(d.commits)) {
		if c := d.commits[name]; !c.known || !c.registered {
			d.register(c, !d.one(3))
			return
		}
	}
}

func (d *drawing) testAny() { d.test(d.any()) }

// test has somebody test a commit.
func (d *drawing) test(name string) {
	v := passes
	if d.one(8) {
		v = fails
	}
	of := pick(d.random, d.rules.tests()...)
	d.say(statement{by: pick(d.random, "ci", "ci", d.person()), verb: v, commit: name, of: of})
}

func (d *drawing) deployTip() { d.ship(d.tip()) }

// ship tests a commit, has it reviewed most often, and deploys it.
func (d *drawing) ship(name string) {
	for _, test := range d.rules.tests() {
		d.say(statement{by: pick(d.random, "ci", "ci", "ci", d.person()), verb: passes, commit: name, of: test})
	}
	if !d.one(3) {
		d.review(name, d.base(name))
	}
	d.deploy(name)
}

// release deploys a commit once all since what runs is reviewed.
func (d *drawing) release() {
	name, env := pick(d.random, d.tip(), d.tip(), d.any()), pick(d.random, environments()...)
	for _, test := range d.rules.tests() {
		d.say(statement{by: "ci", verb: passes, commit: name, of: test})
	}
	base, _ := d.running(env)
	if base == name {
		base = ""
	}
	for _, by := range []string{"rita", "sue", "tom"} {
		d.say(statement{by: by, verb: approves, commit: name, on: base})
	}
	d.deployTo(env, name)
}

func (d *drawing) deployAny() { d.deploy(d.any()) }

func (d *drawing) deployBranch() {
	if len(d.branches) > 0 {
		d.ship(pick(d.random, d.branches...).head)
	}
}

func (d *drawing) deploy(name string) { d.deployTo(pick(d.random, environments()...), name) }

func (d *drawing) deployTo(env, name string) {
	v := deploys
	if d.rolledBack(name, env) != "" && d.one(2) {
		v = redeploys
	}
	d.say(statement{by: pick(d.random, "ops", "deb"), verb: v, commit: name, env: env})
}

// rollBack rolls a commit back that runs or ran, to another one or to the one before.
func (d *drawing) rollBack() {
	env := pick(d.random, environments()...)
	for n := 0; n < 3 && len(d.deployed(env)) < 2; n++ {
		env = pick(d.random, environments()...)
	}
	ran := d.deployed(env)
	if len(ran) == 0 {
		return
	}

	name, to := pick(d.random, ran...), ""
	if d.one(2) {
		name = ran[len(ran)-1]
	}
	if other := pick(d.random, ran...); other != name && d.one(3) {
		to = other
	}
	d.say(statement{by: pick(d.random, "ops", "deb"), verb: rollsBack, commit: name, env: env, on: to})
}

// setBaseline says what runs in an environment to which nothing was deployed.
func (d *drawing) setBaseline() {
	if env := pick(d.random, environments()...); len(d.deployed(env)) == 0 {
		d.say(statement{by: "ops", verb: bases, commit: d.any(), env: env})
	}
}

// build begins a branch of up to three commits: on the mainline, on an older commit or on another branch.
func (d *drawing) build() {
	b := &branch{since: pick(d.random, d.tip(), d.onMainline(), d.any())}
	b.head = b.since
	for range 1 + d.random.IntN(3) {
		b.head = d.add(0, b.head)
		b.commits = append(b.commits, b.head)
	}
	d.branches = append(d.branches, b)
	if !d.one(4) {
		d.reviewOf(b)
	}
}

func (d *drawing) reviewBranch() {
	if len(d.branches) > 0 {
		d.reviewOf(pick(d.random, d.branches...))
	}
}

// reviewOf has somebody review a branch, most often since where it was built on.
func (d *drawing) reviewOf(b *branch) {
	base := b.since
	if d.one(4) {
		base = d.base(b.head)
	}
	d.review(b.head, base)
}

// update merges the mainline to a branch.
func (d *drawing) update() {
	if len(d.branches) == 0 {
		return
	}
	b := pick(d.random, d.branches...)
	source := b.head
	parents := []string{source, d.tip()}
	if d.one(3) {
		slices.Reverse(parents)
	}
	b.head = d.add(0, parents...)
	b.commits = append(b.commits, b.head)
	d.claim("update", b.head, pick(d.random, source, source, pick(d.random, b.commits...)), d.tip())
}

// merge brings a branch to the mainline.
func (d *drawing) merge() {
	if len(d.branches) == 0 {
		return
	}
	b, side, tree := pick(d.random, d.branches...), d.tip(), 0
	if b.since == side || d.one(4) { // it brings the files of the branch
		tree = d.commits[b.head].tree
	}

	kind := pick(d.random, "merge", "merge", "squash", "rebase", "octopus")
	switch kind {
	case "merge":
		d.land(d.add(tree, side, b.head))
	case "octopus":
		d.land(d.add(tree, side, b.head, pick(d.random, d.branches...).head))
		return // nobody can claim that
	case "squash":
		d.land(d.add(tree, side))
	case "rebase":
		for range min(len(b.commits), 3) - 1 {
			d.land(d.add(0, d.tip()))
		}
		d.land(d.add(tree, d.tip()))
	}
	d.claim(kind, d.tip(), b.head, side)
}

// land makes a commit the newest of the mainline, whose key compares it with the one before.
func (d *drawing) land(name string) {
	if len(d.mainline) > 0 && !d.one(8) {
		d.compare(mainline, name, d.tip())
	}
	d.mainline = append(d.mainline, name)
}

// compareAny has somebody compare a commit with another one.
func (d *drawing) compareAny() {
	name, base := d.any(), d.base(d.any())
	if base != "" && base != name {
		d.compare(pick(d.random, mainline, mainline, "ci"), name, base)
	}
}

// compare has somebody sign in which paths a commit differs from another one.
func (d *drawing) compare(by, name, base string) {
	if !d.rules.signed {
		return
	}
	paths := pick(d.random, nil, []string{"web"}, []string{"web"}, []string{"bills"}, []string{"bills", "web"})
	for _, s := range d.records(name) {
		if s.by == by && s.on == base && slices.Equal(s.paths, paths) {
			return // the same statement again
		}
	}
	d.say(statement{by: by, verb: compares, commit: name, on: base, paths: paths})
}

// claim claims that a commit is a clean merge, most often by the mainline's key.
func (d *drawing) claim(kind, name, source, side string) {
	by := mainline
	switch d.random.IntN(6) {
	case 0:
		return
	case 1:
		by = d.person()
	}
	if source != name && side != name && source != side {
		d.say(statement{by: by, verb: claims, commit: name, kind: kind, of: source, on: side})
	}
}

// claimAny claims anything.
func (d *drawing) claimAny() {
	d.claim(pick(d.random, "merge", "squash", "update", "rebase"), d.any(), d.any(), d.any())
}

// revert takes the mainline back to the files of an earlier commit.
func (d *drawing) revert() {
	d.land(d.add(d.commits[d.onMainline()].tree, d.tip()))
}
