package demo

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// A story is what happens in the repos before the demo begins.
type story struct {
	cast
	end    time.Time
	repos  []*repository
	steps  []step
	sights sights
	random *rand.Rand // the same in each demo
	run    int        // number of the last CI run
}

// sights are what a visitor should see.
type sights struct {
	violation, squash, waiting, failing, rollback *commit
	live                                          []*commit // registered while somebody watches
}

// A step happens at a time before the end of the story.
type step struct {
	ago time.Duration
	do  func(context.Context, *stage) error
}

const (
	minute = time.Minute
	hour   = time.Hour
	day    = 24 * time.Hour
)

// signers returns everyone who signs something.
func (s *story) signers() []signer {
	list := []signer{ci(), deployer(), security()}
	for _, a := range s.people {
		list = append(list, developer(a))
	}
	return list
}

// reviewer returns somebody who can review a commit: not its author.
func (s *story) reviewer(c *commit) signer {
	if s.people[0] == c.author {
		return developer(s.people[1])
	}
	return developer(s.people[0])
}

// commits returns how many commits the story registers.
func (s *story) commits() int {
	n := 0
	for _, r := range s.repos {
		n += len(r.commits)
	}
	return n - len(s.sights.live)
}

// play performs the steps, each at its time.
func (s *story) play(ctx context.Context, st *stage) error {
	for _, step := range s.steps {
		at := s.end.Add(-step.ago)
		if at.After(st.now()) {
			if err := st.awaitDeliveries(ctx); err != nil {
				return err
			}
			st.advanceTo(at)
			if err := st.running.Settle(ctx); err != nil { // evidence expires on the way
				return err
			}
		}
		if err := step.do(ctx, st); err != nil {
			return err
		}
	}
	if err := st.awaitDeliveries(ctx); err != nil {
		return err
	}
	st.advanceTo(time.Now().Add(hour)) // as far as it goes
	return st.running.Settle(ctx)
}

func (s *story) at(ago time.Duration, do func(context.Context, *stage) error) {
	s.steps = append(s.steps, step{ago, do})
}

// repo adds a repo to the story.
func (s *story) repo(name string, tasks []task, f files) *project {
	r := &repository{name: name}
	s.repos = append(s.repos, r)
	return &project{s: s, repository: r, tasks: slices.Clone(tasks), start: f}
}

// A project is a repo with the work that is to be done in it.
type project struct {
	*repository
	s     *story
	tasks []task
	start files // of its first commit
	used  []string
}

// begin creates the repo and its first commit on the mainline.
func (p *project) begin(ago time.Duration, who int) *commit {
	p.s.at(ago+minute, func(ctx context.Context, st *stage) error {
		_, err := st.admin.CreateRepo(ctx, st.org, ledger.NewRepo{Name: p.name})
		return err
	})
	author := p.s.people[who]
	return p.push(&commit{branch: mainBranch, files: p.start, author: author, committer: author,
		subject: "Import " + p.name, ago: ago})
}

// push adds a commit, which is registered when it is written.
func (p *project) push(c *commit) *commit {
	p.add(c)
	p.s.at(c.ago, func(ctx context.Context, st *stage) error {
		_, err := st.register(ctx, c)
		return err
	})
	return c
}

// take returns the next task: the first one that the person did, or that anyone may do.
func (p *project) take(who int) task {
	isHers := func(t task) bool { return t.author == p.s.people[who].Name }
	isFree := func(t task) bool { return t.author == "" }
	i := max(slices.IndexFunc(p.tasks, isHers), 0)
	if !isHers(p.tasks[i]) {
		i = max(slices.IndexFunc(p.tasks, isFree), 0)
	}
	t := p.tasks[i]
	p.tasks = slices.Delete(p.tasks, i, i+1)
	return t
}

// A branch is the work of one person on a task.
type branch struct {
	p    *project
	task task
	name string
	who  int
	tip  *commit // nil before the first push
}

// branch begins a branch at the mainline.
func (p *project) branch(who int) *branch {
	t := p.take(who)
	name := t.branch
	if name == "" {
		name = branchName(t.subject)
	}
	for n := 2; slices.Contains(p.used, name); n++ {
		name = fmt.Sprintf("%s-%d", strings.TrimRight(name, "-0123456789"), n)
	}
	p.used = append(p.used, name)
	return &branch{p: p, task: t, name: name, who: who}
}

// An edit changes files.
type edit func(f files, by string)

// push adds a commit to the branch. Its message is the task's, unless a subject is given.
func (b *branch) push(ago time.Duration, subject string, edits ...edit) *commit {
	parent := b.tip
	if parent == nil {
		parent = b.p.main
	}
	if subject == "" {
		subject = b.task.subject
	}
	f := maps.Clone(parent.files)
	for _, e := range edits {
		e(f, b.name)
	}
	author := b.p.s.people[b.who]
	b.tip = b.p.push(&commit{branch: b.name, parent: parent, files: f, author: author, committer: author,
		subject: subject, ago: ago})
	return b.tip
}

// squash merges the branch, which must be up to date, into the mainline. So the new commit
// has the same files.
func (b *branch) squash(ago time.Duration) *commit {
	return b.p.push(&commit{branch: mainBranch, parent: b.p.main, files: b.tip.files, author: b.tip.author,
		committer: ledger.Author{Name: "Merge queue", Email: "merge-queue@forge.example"},
		subject:   b.task.subject, ago: ago, topic: b.tip})
}

// next adds a commit on a branch that is registered after the story.
func (p *project) next(who int, e edit) *commit {
	steps := p.s.steps
	c := p.branch(who).push(0, "", e)
	p.s.steps = steps
	return c
}

// line changes a line of a file, at a part of its length.
func line(path string, at float64) edit {
	return func(f files, by string) {
		lines := strings.SplitAfter(f[path], "\n")
		i := min(int(at*float64(len(lines))), len(lines)-1)
		for i < len(lines)-2 && len(strings.TrimSpace(lines[i])) < 8 {
			i++
		}
		lines[i] = strings.TrimSuffix(lines[i], "\n") + " " + by + "\n"
		f[path] = strings.Join(lines, "")
	}
}

// remove deletes a file.
func remove(path string) edit { return func(f files, _ string) { delete(f, path) } }

// attest adds evidence about a commit.
func (s *story) attest(ago time.Duration, c *commit, e evidence) {
	s.at(ago, func(ctx context.Context, st *stage) error { return st.attest(ctx, c, e) })
}

// between returns a duration between two, to the millisecond.
func (s *story) between(from, to time.Duration) time.Duration {
	return from + time.Duration(s.random.Int64N(int64((to-from)/time.Millisecond)))*time.Millisecond
}

// A check is what CI reports of a commit.
type check struct {
	predicate string
	status    ledger.Status
	from, to  time.Duration // its duration is between these
}

// check adds what CI reports of a commit, minutes after it was pushed.
func (s *story) check(c *commit, checks ...check) {
	s.run++
	ago := c.ago - minute
	for i, k := range checks {
		duration := s.between(k.from, k.to)
		ago -= duration + time.Second
		s.attest(ago, c, evidence{by: ci(), predicate: k.predicate, status: k.status, duration: duration,
			job: fmt.Sprintf("%s/runs/%d/jobs/%d", c.in.name, s.run, i+1)})
	}
}

// review adds a person's review of a commit.
func (s *story) review(ago time.Duration, c *commit, who int, status ledger.Status) {
	s.attest(ago, c, evidence{by: developer(s.people[who]), predicate: "review:code", status: status})
}

// deploy adds a deployment to production, or, with another status than pass, a rollback.
func (s *story) deploy(ago time.Duration, c *commit, by signer, status ledger.Status, reason string) {
	e := evidence{by: by, predicate: "deploy:prod", status: status, duration: s.between(40*time.Second, 90*time.Second)}
	if reason != "" {
		e.annotations = map[string]string{"reason": reason}
	}
	s.attest(ago, c, e)
}
