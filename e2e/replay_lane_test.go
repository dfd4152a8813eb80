package e2e_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
)

// A lane is a repo to whose mainline branches come in one way. Its commits have the files of the history, and other
// parents.
type lane struct {
	*replay
	kind  mergeKind
	git   *gitHistory
	rules *rules
	repo  string

	main   string            // the tip of the mainline
	tips   []string          // those that it had, oldest first
	made   map[string]string // the commits of the lane, by those of the history
	known  map[string]bool   // registered commits
	noted  []noted           // those that wait for the job
	cases  []noted           // all
	decoy  *decoy            // the one that the next job gets as the mainline
	author string            // the e-mail address of the person with the most commits, who also reviews
	// skipped has what jobs did not decide, by the first 12 digits of the commit, and why.
	skipped map[string]string
	// differ has those of the cases that differ from what they may have.
	differ map[noted]bool
	// lacking counts the merges to which something did not carry. The mainline lacks it after some of them.
	lacking int
	// isByOthers reports whether none of the authors reviews.
	isByOthers bool
}

// A noted commit counts in a tally.
type noted struct{ tally, commit string }

// A decoy is a commit that is the tip of the mainline for one job.
type decoy struct {
	name                   string
	commit, parent, source string
	isForged               bool // it is not git's merge
}

// newLane creates a repo.
func (r *replay) newLane(kind mergeKind, git *gitHistory, repo string) *lane {
	contract := filepath.Join(r.t.TempDir(), "contract.yaml")
	must.OK(r.t, os.WriteFile(contract, []byte(r.policy), 0o600))
	r.org.ledgerd("repo", "create", "acme/"+repo)
	r.org.ledgerd("policy", "apply", "acme/"+repo, "-f", contract)
	return &lane{replay: r, kind: kind, git: git, rules: newRules(r.t, filepath.Join(git.dir, ".git", "objects")),
		repo: repo, made: make(map[string]string), known: make(map[string]bool), skipped: make(map[string]string),
		differ: make(map[noted]bool)}
}

// maxQueue is the number of branches in a queue.
const maxQueue = 5

// merge merges the branches of a history in one way.
func (r *replay) merge(kind mergeKind, history, path string) {
	l := r.newLane(kind, newGitHistory(r.t, history, path), history+"-"+kind.name)
	started := time.Now()
	pulls, start := l.git.pulls(*replayMerges, kind.lengths...)
	l.addAuthor(start)

	l.forward(start)
	l.noted = nil
	l.state("test", "ci", start, true, "")
	l.state("review", "reviewer", start, true, "")
	for n, p := range pulls {
		l.mergePull(n, p)
		isLast := n == len(pulls)-1 || n%*replayJob == *replayJob-1
		if isLast || kind.isQueue && n%maxQueue == maxQueue-1 {
			l.finish(n)
		}
		if isLast {
			l.deceive(n)
		}
	}
	for _, c := range l.cases {
		l.check(c, false)
	}
	r.t.Logf("%s: %d branches, %v", l.repo, len(pulls), time.Since(started).Round(time.Second))
}

// addAuthor makes the person with the most commits a reviewer.
func (l *lane) addAuthor(start string) {
	counts := make(map[string]int)
	for email := range strings.Lines(l.git.git("log", "--format=%ae", "HEAD", "^"+start)) {
		if email = strings.ToLower(strings.TrimSpace(email)); !strings.Contains(email, "[bot]") {
			counts[email]++
		}
	}
	for email, n := range counts {
		if l.author == "" || n > counts[l.author] || n == counts[l.author] && email < l.author {
			l.author = email
		}
	}
	l.add("author-"+l.repo, "cn=author-"+l.repo+",ou=dev,o=acme", "review:*", "--email", l.author)
	l.rules.note("person", "author-"+l.repo, l.author)
}

// mergePull makes a branch of a history in the lane, and merges it.
func (l *lane) mergePull(n int, p pull) {
	tip := l.tipOf(n, p)
	files := l.git.tree(p.merged)
	if _, isOn := l.git.try(nil, "merge-base", "--is-ancestor", tip, l.main); isOn {
		l.forward(l.git.commit(files, "Direct", l.main))
		l.noted = l.noted[:len(l.noted)-1]
		l.reviewMain()
	} else {
		l.kind.merge(l, merging{n, tip, files})
	}
	l.made[p.merged] = l.main
}

// tipOf makes a branch of a history in the lane, and returns its tip.
func (l *lane) tipOf(n int, p pull) string {
	if p.tip != "" {
		return l.branch(p.tip, p.merged+"^1")
	}
	return l.branchOf(p.run, n%3)
}

// branch makes the commits of a branch that the mainline of the history did not have, and returns its tip.
func (l *lane) branch(tip, mainline string) string {
	for _, c := range l.git.parents(tip, "^"+mainline) {
		var parents []string
		for _, parent := range c.parents {
			if made := l.made[parent]; made != "" {
				parent = made
			}
			parents = append(parents, parent)
		}
		l.made[c.id] = c.id
		if !slices.Equal(parents, c.parents) {
			l.made[c.id] = l.git.copy(c.id, l.git.tree(c.id), parents...)
		}
	}
	if made := l.made[tip]; made != "" {
		return made
	}
	return tip
}

// branchOf makes a branch of commits of the mainline. It begins so many merges ago, before those that wait for the job
// of a queue, or if they conflict then, now.
func (l *lane) branchOf(run []string, behind int) string {
	last := len(l.tips) - 1
	if l.kind.isQueue {
		last = slices.Index(l.tips, l.mainBefore())
	}
	tip := l.tips[max(0, last-behind)]
	for _, c := range run {
		if tip = l.git.pick(c, tip); tip == "" {
			break
		}
	}
	if tip != "" && !slices.Contains(l.tips, tip) {
		return tip
	}
	tip = l.main
	for _, c := range run {
		tip = l.git.copy(c, l.git.tree(c), tip)
	}
	return tip
}

// reviewBranch records the tests of a branch, some of which fail, and its review with its base. Of some branches, an
// author reviews.
func (l *lane) reviewBranch(m merging) {
	l.pushed(m, m.tip)
	l.state("test", "ci", m.tip, m.n%8 != 5, "")
	who := "reviewer"
	if m.n%6 == 4 && !l.isByOthers {
		who = "author-" + l.repo
	}
	base := ""
	if bases := strings.Fields(l.git.git("merge-base", "--all", l.main, m.tip)); len(bases) == 1 {
		base = bases[0]
	}
	l.state("review", who, m.tip, true, base)
}

// reviewMain records tests and a review of the mainline.
func (l *lane) reviewMain() {
	l.state("test", "ci", l.main, true, "")
	l.state("review", "reviewer", l.main, true, "")
}

// pushed notes the head of a branch, where the forge has it.
func (l *lane) pushed(m merging, head string) {
	l.git.git("update-ref", fmt.Sprintf("refs/pull/%d/head", m.n+1), head)
	l.register(head, fmt.Sprint("topic-", m.n+1))
}

// happened notes how a commit has come about.
func (l *lane) happened(kind attestation.MergeKind, commit, source, parent string) {
	l.rules.note("mainline", parent)
	l.rules.ask("merge", string(kind), commit, source, parent)
}

// forward moves the mainline to a commit.
func (l *lane) forward(commit string) {
	l.main = commit
	l.tips = append(l.tips, commit)
	l.rules.note("mainline", commit)
	l.note(l.kind.name, commit)
}

// note makes a commit wait for the job.
func (l *lane) note(tally, commit string) {
	l.register(commit, "")
	l.noted = append(l.noted, noted{tally, commit})
}

// register registers a commit with its object.
func (l *lane) register(commit, branch string) {
	if l.known[commit] {
		return
	}
	l.known[commit] = true
	c, err := gitrepo.Repo{Dir: l.git.dir}.Describe(l.t.Context(), commit)
	must.OK(l.t, err)
	c.Branch = branch
	_, _, err = l.api.Register(l.t.Context(), "acme", l.repo, c.SHA, c.Registration)
	must.OK(l.t, err)
}

// state records a test or a review.
func (l *lane) state(what, who, commit string, isPass bool, base string) {
	l.register(commit, "")
	if base != "" {
		l.sendSince(base, commit)
	}
	status, word := ledger.Pass, "pass"
	if !isPass {
		status, word = ledger.Fail, "fail"
	}
	l.attest(what+":e2e", who, commit, status, base)

	words := []string{what, who, commit, word}
	if base != "" {
		words = append(words, base)
	}
	l.rules.note(words...)
}

// attest records a result.
func (l *lane) attest(predicate, who, commit string, status ledger.Status, base string) {
	l.serial++
	payload, err := attestation.NewStatement("acme/"+l.repo, commit, attestation.ResultPredicate{
		Predicate: predicate, Result: ledger.Result{Status: status}, Base: base,
		Annotations: map[string]string{"serial": fmt.Sprint(l.serial)},
	})
	must.OK(l.t, err)
	must.OK(l.t, l.record(who, payload))
}

// sendSince sends the objects of what a review is about.
func (l *lane) sendSince(base, commit string) {
	between := strings.Fields(l.git.git("rev-list", commit, "^"+base))
	for part := range slices.Chunk(append(between, base), lineage.MaxObjects) {
		objects, err := gitrepo.Repo{Dir: l.git.dir}.CommitObjects(l.t.Context(), part)
		must.OK(l.t, err)
		_, err = l.api.AddObjects(l.t.Context(), "acme", l.repo, lineage.Objects{Objects: objects})
		must.OK(l.t, err)
	}
}

func (l *lane) record(who string, payload []byte) error {
	envelope, err := attestation.SignDSSE(l.people[who], payload)
	must.OK(l.t, err)
	_, _, err = l.api.Record(l.t.Context(), "acme", l.repo, envelope)
	return err
}

// finish runs the job of the mainline, checks what carries, and records what is missing, except of some merges.
func (l *lane) finish(n int) {
	list := l.runJob(n)
	for _, c := range list {
		l.readClaims(c)
		if v := l.check(c, true); v.state() == ledger.Promotable || c.tally != l.kind.name {
			continue
		}
		if l.lacking++; l.lacking%3 != 2 {
			l.state("test", "ci", c.commit, true, "")
			l.state("review", "reviewer", c.commit, true, "")
			l.check(c, false)
		}
	}
	l.cases = append(l.cases, list...)
}

// runJob runs the job of the mainline, and returns the commits that waited for it.
func (l *lane) runJob(n int) (list []noted) {
	if l.kind.isQueue {
		l.git.git("update-ref", fmt.Sprintf("refs/remotes/origin/gh-readonly-queue/main/pr-%d-x", n), l.main)
		l.job(l.mainBefore())
	} else {
		l.job(l.main)
	}
	list, l.noted = l.noted, nil
	return list
}

// mainBefore returns the commit of the mainline before those that wait.
func (l *lane) mainBefore() string {
	at := len(l.tips) - 1
	for at > 0 && slices.Contains(l.noted, noted{l.kind.name, l.tips[at]}) {
		at--
	}
	return l.tips[at]
}

// deceive runs the job with a decoy as the mainline, by default one with a smuggled line. A claim that names the tree
// of the clean merge carries nothing to it, nor does one by another person.
func (l *lane) deceive(n int) {
	d := cmp.Or(l.decoy, l.smuggled(n))
	l.decoy = nil
	if d == nil {
		return
	}
	l.tally(d.name).isDecoy = true
	l.register(d.commit, "")
	l.rules.note("mainline", d.commit)
	if l.kind.isQueue {
		l.state("test", "ci", d.commit, true, "")
	}

	l.job(d.commit)
	c := noted{d.name, d.commit}
	l.readClaims(c)
	if d.isForged {
		must.OK(l.t, l.forge("mainline", d, l.git.tree(l.main)))
	}
	l.check(c, true)
	l.cases = append(l.cases, c)
}

// smuggled returns the tip of the mainline with a smuggled line, or nil if it has no file.
func (l *lane) smuggled(n int) *decoy {
	bad := l.git.smuggle(l.main)
	if bad == "" {
		return nil
	}
	tip := l.git.git("rev-parse", fmt.Sprintf("refs/pull/%d/head", n+1))
	return &decoy{l.kind.name + ": smuggled line", bad, l.git.git("rev-parse", bad+"^"), tip, true}
}

// forge claims that a decoy is git's merge, into a tree.
func (l *lane) forge(who string, d *decoy, tree string) error {
	kind := attestation.Squashed
	if len(strings.Fields(l.git.git("log", "-1", "--format=%P", d.commit))) > 1 {
		kind = attestation.Merged
	}
	payload, err := attestation.NewMergeStatement(d.commit, attestation.Merge{
		Repo: "acme/" + l.repo, Kind: kind, Tree: tree,
		Source: attestation.MergedCommit{SHA: d.source}, Parent: attestation.MergedCommit{SHA: d.parent},
	})
	must.OK(l.t, err)
	l.register(d.parent, "")
	return l.record(who, payload)
}

// job runs the job of the mainline at a commit.
func (l *lane) job(commit string) {
	l.git.git("update-ref", "refs/remotes/origin/main", commit)
	output, err := l.ledgerd("commit", "register", "acme/"+l.repo, commit, "--branch", "main", "--key", l.claimer)
	if err != nil {
		l.t.Errorf("%s: job at %s: %v\n%s", l.repo, commit, err, output)
	}
	for line := range strings.Lines(output) {
		why, ok := strings.CutPrefix(line, "Not decided: ")
		if !ok {
			continue
		}
		reason := numbers.ReplaceAllString(strings.TrimSpace(why), "…")
		l.undecided[reason]++
		if about, ok := strings.CutPrefix(why, "commit "); ok {
			l.skipped[about[:12]] = notDecided + reason
		}
	}
}

// notDecided is before what a job could not decide.
const notDecided = "not decided: "

// ledgerd runs a command in the clone.
func (l *lane) ledgerd(args ...string) (output string, err error) {
	command := exec.Command("ledgerd", args...)
	command.Dir = l.git.dir
	command.Env = append(os.Environ(), "LEDGERD_URL="+l.org.url, "LEDGERD_TOKEN="+l.org.token)
	text, err := command.CombinedOutput()
	return string(text), err
}

// readClaims checks the claims about a commit with git.
func (l *lane) readClaims(c noted) {
	record, err := l.api.Commit(l.t.Context(), "acme", l.repo, c.commit)
	must.OK(l.t, err)
	n := l.tally(c.tally)
	for _, claim := range record.Merges {
		n.claims++
		if answer := l.rules.ask("merge", claim.Kind, c.commit, claim.Source, claim.Parent); answer != "clean" {
			n.wrongClaims++
			l.t.Errorf("%s: claim %+v about %s: %s", l.repo, claim, c.commit, answer)
		}
	}
}

// numbers are the numbers and commits in reasons.
var numbers = regexp.MustCompile(`\b([0-9a-f]{12,40}|[0-9]+)\b`)

// maxSettle is how long a ledger may take to derive a chain of merges again.
const maxSettle = 10 * time.Second

// check compares what a commit has with what it may have. The first time, it counts the commit.
func (l *lane) check(c noted, isFirst bool) (is verdict) {
	l.t.Helper()
	may := l.rules.verdict(c.commit)
	is, why := l.has(c.commit)
	want := verdict{tests: may.tests, reviews: may.reviews}
	for end := time.Now().Add(maxSettle); is != want && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
		is, why = l.has(c.commit)
	}

	n := l.tally(c.tally)
	if isFirst {
		n.count(may)
	}
	report, more, less := l.t.Errorf, is.isMore(may), may.isMore(is)
	if isNew := !l.differ[c]; isNew && more {
		n.wrong++
	} else if isNew && less {
		n.missed[why]++
	}
	if !more && strings.HasPrefix(why, notDecided) { // beyond a limit, which the job has printed
		report = l.t.Logf
	}
	if more || less {
		l.differ[c] = true
		report("%s: %s %s has %+v, may have %+v: %s", l.repo, c.tally, c.commit, is, may, why)
	}
	return is
}

// has reads what a commit has, and why it lacks something.
func (l *lane) has(commit string) (v verdict, why string) {
	l.t.Helper()
	c, err := l.api.Commit(l.t.Context(), "acme", l.repo, commit)
	must.OK(l.t, err)
	v = verdict{tests: c.Requirements[0].Met, reviews: c.Requirements[1].Met}
	if want := v.state(); c.State != want && want > ledger.Draft {
		l.t.Errorf("%s: %s is %s, want %s", l.repo, commit, c.State, want)
	}

	if len(c.Merges) == 0 {
		return v, cmp.Or(l.skipped[commit[:12]], "nothing is claimed")
	}
	var reasons []string
	for _, r := range c.Requirements {
		if !r.Met {
			reasons = append(reasons, r.Reason)
		}
	}
	for _, m := range c.Merges {
		if m.Reason != "" {
			reasons = append(reasons, m.Reason)
		}
	}
	return v, numbers.ReplaceAllString(strings.Join(reasons, "; "), "…")
}
