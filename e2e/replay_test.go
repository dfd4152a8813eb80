package e2e_test

import (
	"crypto/ed25519"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
	"github.com/ledgerd/ledgerd/ledger/lineage"
)

var (
	replayMerges = flag.Int("replay.merges", 10, "the largest `number` of merges of a kind that TestReplayOfMerges makes "+
		"of each history")
	replayRepos = flag.String("replay.repos", "", "absolute `paths` of git repositories with merge commits, separated by "+
		"commas, for TestReplayOfMerges (default: a generated one)")
)

// TestReplayOfMerges merges the branches of histories again: as merge commits, by squash, by
// rebase and by a queue. Their tests and reviews carry to the mainline exactly if they may,
// and never to a merge with a smuggled line.
func TestReplayOfMerges(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	testenv.Need(t, "git")
	var paths []string
	if *replayRepos != "" {
		paths = strings.Split(*replayRepos, ",")
	} else {
		paths = []string{writeMerges(t, *replayMerges)}
	}

	r := newReplay(t)
	for i, path := range paths {
		r.mergeAll(newGitHistory(t, fmt.Sprint("history", i), path))
	}
	t.Logf("merges of %d histories:\n%s", len(paths), r.table())
	for i := range r.tallies {
		if n := &r.tallies[i]; n.byTree == 0 || n.byClaim == 0 || n.smuggled == 0 {
			t.Errorf("%s: %+v, want some that carry by tree and by claim, and some with a smuggled line", mergeKinds[i].name, *n)
		}
	}
}

// A mergeKind is a way to merge a branch.
type mergeKind struct {
	name string
	// merge returns the commit on the mainline, or "" if it cannot be made.
	merge func(h *gitHistory, m gitMerge) string
}

var mergeKinds = [...]mergeKind{
	{"merge", func(_ *gitHistory, m gitMerge) string { return m.commit }},
	{"squash", (*gitHistory).squash},
	{"rebase", func(h *gitHistory, m gitMerge) string { return h.rebase(m, "Rebase") }},
	{"queue", (*gitHistory).queue},
}

// A mergeTally counts merges of one kind by their outcome.
type mergeTally struct {
	byTree, byClaim int
	// Merges to which not all evidence carries, by the first reason that applies: the tests
	// of the branch failed; it was rebased as several commits, and the parent of the last one
	// has no evidence; git merges the parent and the branch into another tree, or not at all;
	// the parent was not PROMOTABLE.
	failed, several, edited, parent int
	// wrong counts those that became PROMOTABLE although they must not.
	wrong int
	// smuggled counts merges with one line more, and smuggledWrong those that carried.
	smuggled, smuggledWrong int
	// impossible counts merges that could not be made, for example because of conflicts.
	impossible int
}

func (n mergeTally) merges() int { return n.byTree + n.byClaim + n.notAtAll() }

func (n mergeTally) notAtAll() int { return n.failed + n.several + n.edited + n.parent }

// A replay records merges in one ledger.
type replay struct {
	t                 *testing.T
	org               *org
	api               *client.Client
	reviewer, claimer ed25519.PrivateKey
	tallies           [len(mergeKinds)]mergeTally
}

const replayContract = `
requirements:
  - {state: ATTESTED, predicate: "test:*", signers: ["ou=build,o=acme"], carry: [tree, merge],
    carry_signers: ["ou=merge,o=acme"]}
  - {state: PROMOTABLE, predicate: "review:*", signers: ["ou=dev,o=acme"], exclude_author: proven, carry: [tree, merge],
    carry_signers: ["ou=merge,o=acme"]}
`

func newReplay(t *testing.T) *replay {
	r := &replay{t: t, org: newOrg(t)}
	r.reviewer = r.addPerson("cn=reviewer,ou=dev,o=acme")
	r.claimer = r.addPerson("cn=queue,ou=merge,o=acme")
	r.org.start()
	r.api = must.Get(client.New(r.org.url, client.Options{Token: r.org.token}))(t)
	return r
}

// addPerson adds a new key to acme's keyring.
func (r *replay) addPerson(dn string) ed25519.PrivateKey {
	public, private, err := ed25519.GenerateKey(nil)
	must.OK(r.t, err)
	file := filepath.Join(r.t.TempDir(), "key.pub")
	must.OK(r.t, os.WriteFile(file, []byte(must.PublicPEM(r.t, public)), 0o600))
	r.org.ledgerd("identity", "add", "--org", "acme", "--key", file, "--dn", dn, "--may", "*,merge:*")
	return private
}

// mergeAll merges each branch of a history in each way, each way in a repo of its own.
func (r *replay) mergeAll(h *gitHistory) {
	contract := filepath.Join(r.t.TempDir(), "contract.yaml")
	must.OK(r.t, os.WriteFile(contract, []byte(replayContract), 0o600))
	for i, kind := range mergeKinds {
		l := &lane{replay: r, history: h, kind: kind.name, tally: &r.tallies[i], repo: h.name + "-" + kind.name,
			claims: make(map[string]claimed), trees: make(map[string]string)}
		r.org.ledgerd("repo", "create", "acme/"+l.repo)
		r.org.ledgerd("policy", "apply", "acme/"+l.repo, "-f", contract)

		for _, m := range h.merges() {
			if l.merges == *replayMerges {
				break
			}
			if kind.name == "queue" {
				m.mainline, l.isQueued = h.queueParent(m), h.queued[m.mainline] != ""
			}
			if commit := kind.merge(h, m); commit != "" {
				l.merge(commit, m)
			} else {
				l.tally.impossible++
			}
		}
		l.checkAll()
	}
}

// table returns the tallies as a table.
func (r *replay) table() string {
	var text strings.Builder
	text.WriteString("| kind | merges | by tree | by claim | not at all | branch failed | several commits | " +
		"not git's merge | parent not PROMOTABLE | wrongly | smuggled | of them, carried | not made |\n")
	text.WriteString(strings.Repeat("|---", 13) + "|\n")
	for i, kind := range mergeKinds {
		n := r.tallies[i]
		fmt.Fprintf(&text, "| %s", kind.name)
		for _, count := range []int{n.merges(), n.byTree, n.byClaim, n.notAtAll(), n.failed, n.several, n.edited, n.parent,
			n.wrong, n.smuggled, n.smuggledWrong, n.impossible} {
			fmt.Fprintf(&text, " | %d", count)
		}
		text.WriteString(" |\n")
	}
	return text.String()
}

// A lane is a repo to which branches are merged in one way. It knows what was recorded, and
// so which merges may become PROMOTABLE.
type lane struct {
	*replay
	history  *gitHistory
	kind     string
	repo     string
	tally    *mergeTally
	isQueued bool // the parent is a commit of the queue
	merges   int
	serial   int

	tests, reviews []stated           // in the order of their recording
	claims         map[string]claimed // by commit
	trees          map[string]string  // of registered commits
	// cases are the merges, with and without a smuggled line.
	cases []string
}

// A stated result is one of a test or a review.
type stated struct {
	commit, tree string
	isPass       bool
}

// A claimed merge has a source, and a commit of the mainline that must meet the same. Reviews carry only with a base.
type claimed struct {
	source, parent string
	hasBase        bool
}

// latest returns the latest result that counts for a commit: one about its tree, or one that
// carries from a source.
func (l *lane) latest(list []stated, commit, source string) bool {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].tree == l.trees[commit] || list[i].commit == source {
			return list[i].isPass
		}
	}
	return false
}

// isTested, isReviewed and isPromotable report what a commit must be.
func (l *lane) isTested(commit string) bool {
	source := ""
	if c, ok := l.claims[commit]; ok && l.isTested(c.parent) {
		source = c.source
	}
	return l.latest(l.tests, commit, source)
}

func (l *lane) isReviewed(commit string) bool {
	source := ""
	if c, ok := l.claims[commit]; ok && c.hasBase && l.isReviewed(c.parent) {
		source = c.source
	}
	return l.latest(l.reviews, commit, source)
}

func (l *lane) isPromotable(commit string) bool { return l.isTested(commit) && l.isReviewed(commit) }

// merge records the evidence of a branch and, for most merges, of the mainline. Then it
// registers the merge, and claims it if git agrees.
func (l *lane) merge(commit string, m gitMerge) {
	n := l.merges
	l.merges++
	hasFailed := n%8 == 5
	if n%8 != 3 && !l.isQueued {
		l.test(m.mainline, true)
		l.review(m.mainline, "")
	}
	l.test(m.branch, !hasFailed)
	base := l.base(m)
	l.review(m.branch, base)
	l.register(commit)
	l.cases = append(l.cases, commit)
	if l.kind == "queue" {
		l.test(commit, true)
	}

	isByTree := l.check(commit)
	refused := l.claim(commit, m.branch, base != "")
	isPromotable := l.check(commit)
	parent := l.history.git("rev-parse", commit+"^")
	switch {
	case isByTree && isPromotable:
		l.tally.byTree++
	case isPromotable:
		l.tally.byClaim++
	case hasFailed && l.kind != "queue": // the queue tests again
		l.tally.failed++
	case parent != m.mainline:
		l.tally.several++
	case refused:
		l.tally.edited++
	default:
		l.tally.parent++
	}
	if n%4 == 0 {
		l.smuggle(commit, m.branch)
	}
}

// register registers a commit with its object.
func (l *lane) register(commit string) {
	if l.trees[commit] != "" {
		return
	}
	c, err := gitrepo.Repo{Dir: l.history.dir}.Describe(l.t.Context(), commit)
	must.OK(l.t, err)
	_, _, err = l.api.Register(l.t.Context(), "acme", l.repo, c.SHA, c.Registration)
	must.OK(l.t, err)
	l.trees[commit] = l.history.tree(commit)
}

// test records a test of a commit, and review a review of it.
func (l *lane) test(commit string, isPass bool) {
	l.tests = append(l.tests, l.state(commit, "test:go", "", isPass, l.org.key))
}

func (l *lane) review(commit, base string) {
	l.reviews = append(l.reviews, l.state(commit, "review:code", base, true, l.reviewer))
}

// base returns the merge base of a branch and the mainline, or "" if there are several, and sends the objects of all
// commits between.
func (l *lane) base(m gitMerge) string {
	bases := strings.Fields(l.history.git("merge-base", "--all", m.mainline, m.branch))
	if len(bases) != 1 || bases[0] == m.branch {
		return ""
	}
	between := strings.Fields(l.history.git("rev-list", m.mainline, m.branch, "^"+bases[0]))
	for part := range slices.Chunk(append(between, bases[0]), lineage.MaxObjects) {
		objects, err := gitrepo.Repo{Dir: l.history.dir}.CommitObjects(l.t.Context(), part)
		must.OK(l.t, err)
		_, err = l.api.AddObjects(l.t.Context(), "acme", l.repo, lineage.Objects{Objects: objects})
		must.OK(l.t, err)
	}
	return bases[0]
}

func (l *lane) state(commit, predicate, base string, isPass bool, key ed25519.PrivateKey) stated {
	l.register(commit)
	result := ledger.Result{Status: ledger.Pass}
	if !isPass {
		result.Status = ledger.Fail
	}
	l.serial++
	payload, err := attestation.NewStatement("acme/"+l.repo, commit, attestation.ResultPredicate{
		Predicate: predicate, Result: result, Base: base, Annotations: map[string]string{"serial": fmt.Sprint(l.serial)},
	})
	must.OK(l.t, err)
	must.OK(l.t, l.record(key, payload))
	return stated{commit, l.trees[commit], isPass}
}

func (l *lane) record(key ed25519.PrivateKey, payload []byte) error {
	envelope, err := attestation.SignDSSE(key, payload)
	must.OK(l.t, err)
	_, _, err = l.api.Record(l.t.Context(), "acme", l.repo, envelope)
	return err
}

// claim claims a merge if git agrees that it is one. Its own merge of the two commits must
// then have the same tree.
func (l *lane) claim(commit, branch string, hasBase bool) (refused bool) {
	checked, err := l.checkMerge(commit, branch)
	if err != nil {
		return true
	}
	if tree := l.history.cleanTree(checked.Parent, branch); tree != l.trees[commit] || tree != checked.Tree {
		l.t.Errorf("%s: git makes tree %s of the parent of %s and %s", l.repo, tree, commit, branch)
	}

	l.register(checked.Parent)
	must.OK(l.t, l.sign(commit, checked))
	l.claims[commit] = claimed{branch, checked.Parent, hasBase}
	return false
}

func (l *lane) checkMerge(commit, branch string) (gitrepo.Merge, error) {
	repo := gitrepo.Repo{Dir: l.history.dir}
	return repo.CheckMerge(l.t.Context(), gitrepo.Merge{Kind: l.claimKind(), Commit: commit, Source: branch})
}

func (l *lane) claimKind() attestation.MergeKind {
	if l.kind == "merge" {
		return attestation.Merged
	}
	return attestation.Squashed
}

// sign records a claim that a commit is a merge.
func (l *lane) sign(commit string, m gitrepo.Merge) error {
	payload, err := attestation.NewMergeStatement(commit, attestation.Merge{
		Repo: "acme/" + l.repo, Kind: m.Kind, Tree: m.Tree,
		Source: attestation.MergedCommit{SHA: m.Source}, Parent: attestation.MergedCommit{SHA: m.Parent},
	})
	must.OK(l.t, err)
	return l.record(l.claimer, payload)
}

// check reads whether a commit is PROMOTABLE, and compares this with what it must be.
func (l *lane) check(commit string) bool {
	l.t.Helper()
	c, err := l.api.Commit(l.t.Context(), "acme", l.repo, commit)
	must.OK(l.t, err)
	is, want := c.State >= ledger.Promotable, l.isPromotable(commit)
	if is && !want {
		l.tally.wrong++
	}
	if is != want {
		l.t.Errorf("%s: %s is %s, want PROMOTABLE: %t", l.repo, commit, c.State, want)
	}
	return is
}

// checkAll checks all merges again, after all evidence.
func (l *lane) checkAll() {
	for _, commit := range l.cases {
		l.check(commit)
	}
}

// smuggle adds a line to a merge. Git refuses to claim it, and a claim that names the tree of
// the clean merge carries nothing.
func (l *lane) smuggle(commit, branch string) {
	bad := l.history.smuggle(commit)
	if bad == "" {
		return
	}
	l.tally.smuggled++
	l.register(bad)
	l.cases = append(l.cases, bad)
	if l.kind == "queue" {
		l.test(bad, true)
	}
	if m, err := l.checkMerge(bad, branch); err == nil {
		l.t.Errorf("%s: git claims %s with a smuggled line as %+v", l.repo, bad, m)
	}

	forged := gitrepo.Merge{
		Kind: l.claimKind(), Source: branch, Parent: l.history.git("rev-parse", bad+"^"), Tree: l.trees[commit],
	}
	l.register(forged.Parent)
	if forged.Parent != forged.Source {
		must.OK(l.t, l.sign(bad, forged))
	}
	if l.check(bad) {
		l.tally.smuggledWrong++
	}
}
