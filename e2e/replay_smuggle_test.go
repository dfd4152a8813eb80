package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// TestSmuggledMerges makes merges that are not what git alone makes of both sides, each as a squash, a merge and an
// update. Nobody claims them, and forged claims carry nothing.
func TestSmuggledMerges(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	testenv.Need(t, "git", "python3")
	r := newReplay(t)
	r.add("other", "cn=other,ou=build,o=acme", "merge:*")
	for i, c := range smugglings() {
		forest := gitrepotest.NewForest(t)
		f := smuggler{forest, &gitHistory{t: t, name: c.name, dir: forest.Dir}}
		main, topic, tree := f.make(c)
		r.newLane(mergeKind{}, f.git, fmt.Sprint("smuggling", i)).wantNothing(c, main, topic, tree)
	}
	t.Logf("smuggled merges:\n%s", r.table())
}

// A smuggling is a way in which a merge gets other files than git alone gives it.
type smuggling struct {
	name string
	// prepare changes main before topic is branched off, and the functions of both sides change each.
	prepare, topic, main func(f smuggler)
	// config has options for git merge.
	config []string
	// smuggle changes and adds files after git merge.
	smuggle func(f smuggler)
	// isClean reports whether git alone makes the same.
	isClean bool
}

func smugglings() []smuggling {
	nothing := func(smuggler) {}
	first := func(text string) func(f smuggler) { return func(f smuggler) { f.line(1, text) } }
	last := func(f smuggler) { f.line(9, "nine") }
	conflict := func(f smuggler) { f.line(1, "eins"); f.write("m", "m\n") }
	module := func(digit string) func(f smuggler) {
		return func(f smuggler) {
			f.Git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat(digit, 40)+",module")
			must.OK(f.git.t, os.MkdirAll(filepath.Join(f.Dir, "module"), 0o755))
		}
	}
	attributes := func(text string) func(f smuggler) {
		return func(f smuggler) { f.write(".gitattributes", text) }
	}
	rename := func(f smuggler) { f.Git("mv", "a", "renamed") }
	return []smuggling{
		{name: "nothing", prepare: nothing, topic: first("one"), main: last, smuggle: nothing, isClean: true},
		{name: "one line", prepare: nothing, topic: first("one"), main: last,
			smuggle: func(f smuggler) { f.line(5, "smuggled") }},
		{name: "a changed mode", prepare: nothing, topic: first("one"), main: last,
			smuggle: func(f smuggler) { f.Git("update-index", "--chmod=+x", "a") }},
		{name: "a swapped submodule", prepare: module("1"), topic: first("one"), main: last, smuggle: module("2")},
		{name: "another commit of a submodule that the branch moves", prepare: module("1"), topic: module("2"), main: last,
			smuggle: module("3")},
		{name: "an added empty file", prepare: nothing, topic: first("one"), main: last,
			smuggle: func(f smuggler) { f.write("empty", "") }},
		{name: "a conflict resolved by hand", prepare: nothing, topic: first("one"), main: conflict,
			smuggle: first("one, eins")},
		{name: "a conflict resolved as the branch has it", prepare: nothing, topic: first("one"), main: conflict,
			smuggle: first("one")},
		{name: "rerere", prepare: nothing, topic: first("one"), main: conflict, smuggle: smuggler.replayResolution},
		{name: "a merge driver", prepare: attributes("a merge=take\n"), topic: first("one"), main: conflict,
			config: []string{"-c", "merge.take.driver=cp %B %A"}, smuggle: nothing},
		{name: "the union of both", prepare: attributes("a merge=union\n"), topic: first("one"), main: conflict,
			smuggle: nothing},
		{name: "a rename on one side, not followed", prepare: nothing, topic: rename, main: last,
			smuggle: func(f smuggler) {
				f.Git("checkout", "--quiet", "main", "--", "a")
				f.Git("checkout", "--quiet", "topic", "--", "renamed")
			}},
		{name: "a rename of a folder on one side, followed", prepare: func(f smuggler) { f.write("old/b", lines(9)) },
			topic: func(f smuggler) { f.Git("mv", "old", "new") }, main: func(f smuggler) { f.write("old/c", "c\n") },
			config: []string{"-c", "merge.directoryRenames=true"}, smuggle: nothing},
		// Git alone follows a rename of a file: that is its clean merge.
		{name: "a rename on one side, followed", prepare: nothing, topic: rename, main: last, smuggle: nothing,
			isClean: true},
	}
}

// A smuggler makes merges in a repository with a file a.
type smuggler struct {
	gitrepotest.Forest
	git *gitHistory
}

// write writes a file, and adds it.
func (f smuggler) write(name, content string) {
	f.git.t.Helper()
	gitrepotest.WriteFile(f.git.t, filepath.Join(f.Dir, name), content)
	f.Git("add", name)
}

// line changes a line of the file a.
func (f smuggler) line(n int, text string) {
	f.git.t.Helper()
	content := must.Get(os.ReadFile(filepath.Join(f.Dir, "a")))(f.git.t)
	list := strings.Split(string(content), "\n")
	if len(list) != len(strings.Split(lines(9), "\n")) { // a conflict
		list = strings.Split(lines(9), "\n")
	}
	list[n-1] = text
	f.write("a", strings.Join(list, "\n"))
}

func lines(n int) string { return "1\n2\n3\n4\n5\n6\n7\n8\n9\n"[:2*n] }

// replayResolution makes git resolve a conflict as it was resolved before.
func (f smuggler) replayResolution() {
	f.Git("config", "rerere.enabled", "true")
	f.Git("config", "rerere.autoUpdate", "true")
	for range 2 {
		f.Git("reset", "--quiet", "--hard")
		f.git.try(nil, "merge", "--squash", "topic")
		if f.Git("ls-files", "--unmerged") != "" {
			f.line(1, "one, eins")
			f.Git("rerere")
		}
	}
	content := must.Get(os.ReadFile(filepath.Join(f.Dir, "a")))(f.git.t)
	if !strings.HasPrefix(string(content), "one, eins\n") {
		f.git.t.Errorf("rerere has made %q", content)
	}
}

// make makes both sides and a merge. It returns both, and the tree of the merge.
func (f smuggler) make(c smuggling) (main, topic, tree string) {
	f.write("a", lines(9))
	c.prepare(f)
	f.Git("commit", "--quiet", "--message", "base")
	f.Git("checkout", "--quiet", "-b", "topic")
	c.topic(f)
	f.Git("commit", "--quiet", "--message", "topic")
	f.Git("checkout", "--quiet", "main")
	c.main(f)
	f.Git("commit", "--quiet", "--message", "main")
	main, topic = f.Git("rev-parse", "main"), f.Git("rev-parse", "topic")

	f.Git("checkout", "--quiet", "--detach", "main")
	f.git.try(nil, append(c.config, "merge", "--squash", "topic")...)
	c.smuggle(f)
	f.Git("commit", "--quiet", "--message", "merge")
	tree = f.Git("rev-parse", "HEAD^{tree}")
	f.Git("checkout", "--quiet", "--force", "main")
	f.Git("branch", "--quiet", "-D", "topic")
	return main, topic, tree
}

// wantNothing checks that what is known of both sides carries to no merge of them with a tree, or if it is clean, to
// all.
func (l *lane) wantNothing(c smuggling, main, topic, tree string) {
	l.tally(c.name).isDecoy = !c.isClean
	base := l.git.git("merge-base", main, topic)
	l.forward(main)
	l.state("test", "ci", main, true, "")
	l.state("review", "reviewer", main, true, base)
	l.pushed(merging{n: 0}, topic)
	l.state("test", "ci", topic, true, "")
	l.state("review", "reviewer", topic, true, base)

	squash := l.git.commit(tree, "Squash", main)
	merge := l.git.commit(tree, "Merge", main, topic)
	update := l.git.commit(tree, "Update", topic, main)
	l.happened(attestation.Squashed, squash, topic, main)
	l.happened(attestation.Merged, merge, topic, main)
	l.happened(attestation.Updated, update, topic, main)
	l.pushed(merging{n: 1}, update)
	for _, commit := range []string{squash, merge} {
		l.job(commit)
	}
	for name, commit := range map[string]string{"squash": squash, "merge": merge, "update": update} {
		noted := noted{c.name, commit}
		l.readClaims(noted)
		l.check(noted, true)
		if isClaimed := l.isClaimed(commit, topic); isClaimed != c.isClean {
			l.t.Errorf("%s: the %s is claimed: %t", c.name, name, isClaimed)
		}
		has, why := l.has(commit)
		if isAll := has.state() == ledger.Promotable; isAll != c.isClean || !isAll && has.tests {
			l.t.Errorf("%s: the %s has %+v (%s), want all: %t", c.name, name, has, why, c.isClean)
		}
		if !c.isClean {
			l.wantForged(c.name+": "+name, decoy{commit: commit, parent: main, source: topic}, tree)
		}
	}
}

// isClaimed reports whether the job has claimed that a commit is a merge of a source.
func (l *lane) isClaimed(commit, source string) bool {
	record, err := l.api.Commit(l.t.Context(), "acme", l.repo, commit)
	must.OK(l.t, err)
	return slices.ContainsFunc(record.Merges, func(m ledger.MergeClaim) bool { return m.Source == source })
}

// wantForged checks that forged claims carry nothing: the CLI makes none, one about the tree of a side is not about the
// commit, and those of others than the mainline's key do not count.
func (l *lane) wantForged(name string, d decoy, tree string) {
	option, want := "--merge-of", "is not a clean merge of"
	switch {
	case strings.HasSuffix(name, "squash"):
		option = "--squash-of"
	case strings.HasSuffix(name, "update"):
		want = "merges " + d.parent[:12] + ", not" // the option is for merges to the mainline
	}
	output, err := l.ledgerd("attest", "acme/"+l.repo, "--commit", d.commit, option, d.source, "--key", l.claimer)
	if err == nil || !strings.Contains(output, want) {
		l.t.Errorf("%s: attest: %v: %s, want %q", name, err, output, want)
	}

	must.OK(l.t, l.forge("mainline", &d, l.git.tree(d.source)))
	must.OK(l.t, l.forge("other", &d, tree))
	if has, _ := l.has(d.commit); has.tests || has.reviews {
		l.t.Errorf("%s: %+v, want nothing", name, has)
	}
}
