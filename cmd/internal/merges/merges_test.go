package merges

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/gitrepo/gitrepotest"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// A history is a repository whose commits have names, as tags. Its first commit is A, on main; topic has changed one
// file since, in the commit T, and main another one, in the commit B.
type history struct {
	gitrepotest.Forest
	t     *testing.T
	heads []Head
	query Query // without its commits
}

const lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

func newHistory(t *testing.T) *history {
	h := &history{Forest: gitrepotest.NewForest(t), t: t}
	h.Commit("a", lines)
	h.do("tag A", "checkout -q -b topic")
	h.Commit("a", strings.Replace(lines, "1", "one", 1))
	h.do("tag T", "checkout -q main")
	h.Commit("a", strings.Replace(lines, "9", "nine", 1))
	h.do("tag B")
	return h
}

// do runs commands of git, whose arguments have no spaces.
func (h *history) do(commands ...string) {
	h.t.Helper()
	for _, command := range commands {
		h.Git(strings.Fields(command)...)
	}
}

// known is what the ledger knows of a branch: its commits, the latest first.
func (h *history) known(branch string, names ...string) {
	for _, name := range names {
		h.heads = append(h.heads, Head{Branch: branch, SHA: h.Git("rev-parse", name)})
	}
}

// find returns the claims, as "commit<-source on parent: kind", with the names of the commits.
func (h *history) find(mainline, done string) []string {
	h.t.Helper()
	r := h.result(h.t.Context(), gitrepo.Repo{Dir: h.Dir}, mainline, done)
	for _, err := range r.Undecided {
		h.t.Errorf("undecided: %v", err)
	}
	return h.names(r)
}

func (h *history) result(ctx context.Context, g gitrepo.Repo, mainline, done string) Result {
	h.t.Helper()
	done = h.Git("rev-parse", done)
	q := h.query
	q.Commit, q.Branch, q.Heads = h.Git("rev-parse", mainline), "main", h.heads
	q.Mainline = cmp.Or(q.Mainline, q.Commit)
	if q.Claims == nil {
		q.Claims = func(_ context.Context, sha string) ([]Claim, error) {
			if sha == done {
				return []Claim{{attestation.Squashed, done, done}}, nil
			}
			return nil, nil
		}
	}
	r, err := Find(ctx, g, q)
	must.OK(h.t, err)
	return r
}

func (h *history) names(r Result) []string {
	names := make(map[string]string)
	for line := range strings.Lines(h.Git("for-each-ref", "refs/tags", "--format=%(objectname) %(refname:strip=2)")) {
		sha, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		names[sha] = name
	}
	list := []string{}
	for _, m := range r.Claims {
		list = append(list, names[m.Commit]+"<-"+names[m.Source]+" on "+names[m.Parent]+": "+string(m.Kind))
	}
	return list
}

// pull publishes commits as a forge does for pull requests and such.
func (h *history) pull(ref, name string) { h.do("update-ref " + ref + " " + name) }

// Every button makes the claims that docs/evidence.md lists.
func TestButtons(t *testing.T) {
	const pull, request = "refs/pull/1/head", "refs/merge-requests/1/head"
	second := func(h *history) { // T2, on top of T
		h.do("checkout -q topic")
		h.Commit("c", "c")
		h.do("tag T2")
	}
	update := func(h *history) { // U merges B into topic
		h.do("checkout -q topic", "merge -q --no-edit main", "tag U", "checkout -q main")
	}

	for name, row := range map[string]struct {
		build func(h *history)
		want  []string
	}{
		"GitHub, merge commit; Gitea, Forgejo, Bitbucket: the same": {func(h *history) {
			h.pull(pull, "T")
			h.do("merge -q --no-ff --no-edit topic", "tag C")
		}, []string{"C<-T on B: merge"}},
		"GitHub, squash; Gitea, Forgejo, Bitbucket: the same": {func(h *history) {
			h.pull(pull, "T")
			h.squash("C", "topic")
		}, []string{"C<-T on B: squash"}},
		"GitHub, rebase of one commit": {func(h *history) {
			h.pull(pull, "T")
			h.do("cherry-pick topic", "tag C")
		}, []string{"C<-T on B: squash"}},
		"GitHub, rebase of several commits; Gitea, Forgejo, Bitbucket: the same": {func(h *history) {
			second(h)
			h.pull(pull, "T2")
			h.do("checkout -q main", "cherry-pick A..topic", "tag C")
		}, []string{"C<-T2 on B: rebase"}},
		"Gitea, Forgejo, rebase and merge commit": {func(h *history) {
			second(h)
			h.known("topic", "T2")
			h.do("checkout -q -b rebased topic", "rebase -q main", "tag R", "checkout -q main",
				"merge -q --no-ff --no-edit rebased", "tag C")
		}, []string{"R<-T2 on B: rebase", "C<-R on B: merge", "C<-T2 on B: rebase"}},
		"Update branch by merge": {func(h *history) {
			h.pull(pull, "T")
			update(h)
			h.pull(pull, "U")
		}, []string{"U<-T on B: update"}},
		"Update branch by merge, with the parents in the other order": {func(h *history) {
			h.do("checkout -q -b other main", "merge -q --no-edit topic", "tag U", "checkout -q main")
			h.pull(pull, "U")
		}, []string{"U<-T on B: update"}},
		"Update branch by rebase": {func(h *history) {
			h.do("checkout -q topic", "rebase -q main", "tag R", "checkout -q main")
			h.known("topic", "R", "T")
		}, []string{"R<-T on B: rebase"}},
		"two updates, then a squash": {func(h *history) {
			update(h)
			h.Commit("m", "m")
			h.do("tag M", "checkout -q topic", "merge -q --no-edit main", "tag V", "checkout -q main")
			h.pull(pull, "V")
			h.squash("C", "topic")
		}, []string{"U<-T on B: update", "V<-U on M: update", "V<-T on M: update", "C<-V on M: squash", "C<-U on M: squash",
			"C<-T on M: squash"}},
		"an update, then a merge commit": {func(h *history) {
			update(h)
			h.Commit("m", "m")
			h.do("tag M", "merge -q --no-ff --no-edit topic", "tag C")
		}, []string{"U<-T on B: update", "C<-U on M: merge", "C<-T on M: rebase"}},
		"an update that the mainline is moved forward to": {func(h *history) {
			h.query.Before = h.Git("rev-parse", "B")
			update(h)
			h.do("merge -q --ff-only topic")
		}, []string{"U<-T on B: merge"}},
		"GitHub, merge queue": {func(h *history) {
			h.pull(pull, "T")
			h.Branch("second", "A", "s", "s")
			h.do("tag S")
			h.pull("refs/pull/2/head", "second")
			h.do("tag -f S second", "checkout -q -b queue main")
			h.squash("Q", "topic")
			h.pull("refs/remotes/origin/gh-readonly-queue/main/pr-1-x", "Q")
			h.squash("P", "second")
			h.pull("refs/remotes/origin/gh-readonly-queue/main/pr-2-x", "P")
		}, []string{"Q<-T on B: squash", "P<-S on Q: squash"}},
		"GitLab, merge commit": {func(h *history) {
			h.pull(request, "T")
			h.do("merge -q --no-ff --no-edit topic", "tag C")
		}, []string{"C<-T on B: merge"}},
		"GitLab, semi-linear history, and Gerrit, rebase always with merge commits": {func(h *history) {
			h.do("checkout -q topic", "rebase -q main", "tag R", "checkout -q main",
				"merge -q --no-ff --no-edit topic", "tag C")
			h.known("topic", "R", "T")
		}, []string{"R<-T on B: rebase", "C<-R on B: merge", "C<-T on B: rebase"}},
		"GitLab, fast-forward after a rebase": {func(h *history) {
			second(h)
			h.do("rebase -q main", "tag R", "checkout -q main", "merge -q --ff-only topic")
			h.known("topic", "R", "T2")
		}, []string{"R<-T2 on B: rebase"}},
		"GitLab, squash and merge commit": {func(h *history) {
			second(h)
			h.pull(request, "T2")
			h.do("checkout -q -b squashed A")
			h.squash("S", "topic")
			h.do("checkout -q main", "merge -q --no-ff --no-edit squashed", "tag C")
		}, []string{"S<-T2 on A: squash", "C<-S on B: merge", "C<-T2 on B: rebase"}},
		"GitLab, merge train": {func(h *history) {
			h.pull(request, "T")
			h.Branch("second", "A", "s", "s")
			h.do("tag S second", "update-ref refs/merge-requests/2/head second", "checkout -q -b train main",
				"merge -q --no-ff --no-edit topic", "tag Q", "update-ref refs/merge-requests/1/train Q",
				"merge -q --no-ff --no-edit second", "tag P", "update-ref refs/merge-requests/2/train P")
		}, []string{"Q<-T on B: merge", "P<-S on Q: merge"}},
		"Bitbucket, fast-forward; Gerrit, fast-forward only": {func(h *history) {
			h.do("checkout -q topic", "rebase -q main", "tag R", "checkout -q main", "merge -q --ff-only topic")
			h.pull("refs/changes/01/1/1", "T")
			h.pull("refs/changes/01/1/2", "R")
		}, []string{"R<-T on B: squash"}},
		"Gerrit, merge if necessary, merge always": {func(h *history) {
			h.pull("refs/changes/01/1/1", "T")
			h.do("merge -q --no-ff --no-edit topic", "tag C")
		}, []string{"C<-T on B: merge"}},
		"Gerrit, cherry pick, rebase if necessary, rebase always": {func(h *history) {
			second(h)
			h.pull("refs/changes/01/1/1", "T")
			h.pull("refs/changes/02/2/1", "T2")
			h.do("checkout -q main", "cherry-pick T")
			h.Git("commit", "-q", "--amend", "-m", "a\n\nReviewed-on: https://gerrit/1")
			h.do("tag C1", "cherry-pick T2")
			h.Git("commit", "-q", "--amend", "-m", "c\n\nReviewed-on: https://gerrit/2")
			h.do("tag C2")
		}, []string{"C1<-T on B: squash", "C2<-T2 on B: rebase"}},
		"a stacked branch": {func(h *history) {
			second(h)
			h.pull(pull, "T")
			h.pull("refs/pull/2/head", "T2")
			h.do("checkout -q main")
			h.squash("C", "T")
			h.squash("D", "T2")
		}, []string{"C<-T on B: squash", "D<-T2 on C: squash"}},
		"a file that the mainline has renamed": {func(h *history) {
			h.pull(pull, "T")
			h.do("mv a renamed", "commit -q -m rename", "tag M")
			h.squash("C", "topic")
		}, []string{"C<-T on M: squash"}},
		"nothing": {func(h *history) { h.Commit("d", "d"); h.pull(pull, "T") }, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			row.build(h)
			if got := h.find("main", "B"); !slices.Equal(got, row.want) {
				t.Errorf("claims:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(row.want, "\n"))
			}
		})
	}
}

// What git does not make of the two commits is not claimed, whatever somebody or a program made of it.
func TestNothingElseIsClaimed(t *testing.T) {
	write := func(h *history, name, content string) {
		gitrepotest.WriteFile(h.t, filepath.Join(h.Dir, name), content)
		h.do("add --all")
	}
	conflict := func(h *history) { // main and topic change the same line
		h.Commit("a", strings.Replace(lines, "1", "eins", 1))
	}
	resolve := func(h *history) {
		must.OK(h.t, exec.Command("git", "-C", h.Dir, "rev-parse").Run())
		_ = exec.Command("git", "-C", h.Dir, "merge", "--no-commit", "--no-ff", "topic").Run()
		write(h, "a", strings.Replace(lines, "1", "both", 1))
	}
	for name, change := range map[string]func(h *history){
		"one smuggled line": func(h *history) { write(h, "a", "one\n2\n3\n4\nevil\n6\n7\n8\nnine\n") },
		"a changed mode":    func(h *history) { h.do("update-index --chmod=+x a") },
		"a swapped submodule": func(h *history) {
			h.do("update-index --add --cacheinfo 160000," + strings.Repeat("2", 40) + ",module")
		},
		"an added empty file": func(h *history) { write(h, "empty", "") },
		"a removed file":      func(h *history) { h.do("rm -q --cached a") },
	} {
		for _, kind := range []string{"squash", "merge", "update", "rebase"} {
			t.Run(kind+" with "+name, func(t *testing.T) {
				h := newHistory(t)
				h.known("topic", "T")
				switch kind {
				case "squash":
					h.do("merge -q --squash topic", "commit -q -m C")
				case "merge":
					h.do("merge -q --no-ff --no-edit topic")
				case "update":
					h.do("checkout -q topic", "merge -q --no-edit main")
				case "rebase":
					h.do("checkout -q topic", "rebase -q main")
				}
				change(h)
				h.do("commit -q --amend --no-edit")
				if kind != "squash" && kind != "merge" {
					h.heads = nil
					h.known("topic", "topic", "T")
				}
				if got := h.find("main", "B"); len(got) > 0 {
					t.Errorf("claims: %q", got)
				}
			})
		}
	}

	for name, build := range map[string]func(h *history){
		"a conflict resolved by hand": func(h *history) { conflict(h); resolve(h) },
		"rerere": func(h *history) {
			h.do("config rerere.enabled true", "config rerere.autoUpdate true")
			conflict(h)
			resolve(h)
			h.do("commit -q -m first", "reset -q --hard HEAD^")
			_ = exec.Command("git", "-C", h.Dir, "merge", "--no-commit", "--no-ff", "topic").Run()
		},
		"a merge driver": func(h *history) {
			h.Git("config", "merge.mine.driver", "cp %B %A")
			gitrepotest.WriteFile(h.t, filepath.Join(h.Dir, ".git/info/attributes"), "a merge=mine\n")
			conflict(h)
			h.do("merge -q --no-commit --no-ff topic")
		},
		"a rename on one side that git would follow": func(h *history) {
			h.do("mv a renamed", "commit -q -m rename", "merge -q --no-commit -s ours topic")
			write(h, "a", strings.Replace(lines, "1", "one", 1)) // as without the detection of renames
		},
	} {
		for _, kind := range []string{"merge", "squash"} {
			t.Run(kind+" with "+name, func(t *testing.T) {
				h := newHistory(t)
				h.known("topic", "T")
				build(h)
				if kind == "squash" {
					must.OK(t, os.Remove(filepath.Join(h.Dir, ".git", "MERGE_HEAD")))
				}
				h.do("commit -q -m C")
				if got := h.find("main", "B"); len(got) > 0 {
					t.Errorf("claims: %q", got)
				}
			})
		}
	}
}

// If the mainline was moved forward to a branch that had merged it, and nobody knows from where, either side of the
// merge may be the branch.
func TestSidesThatNobodyKnowsAreUndecided(t *testing.T) {
	h := newHistory(t)
	h.known("topic", "T")
	h.do("checkout -q topic", "merge -q --no-edit main", "tag U", "checkout -q main", "merge -q --ff-only topic")
	r := h.result(t.Context(), gitrepo.Repo{Dir: h.Dir}, "main", "A")
	if len(r.Claims) > 0 || len(r.Undecided) != 1 || !strings.Contains(r.Undecided[0].Error(), "which parent of") {
		t.Errorf("claims %q, undecided %v", h.names(r), r.Undecided)
	}
}

// A clone without the history says so, and claims nothing wrong.
func TestShallowCloneIsUndecided(t *testing.T) {
	h := newHistory(t)
	h.known("topic", "T")
	h.do("merge -q --squash topic", "commit -q -m C", "tag C")
	for depth, want := range map[string]int{"1": 0, "10": 1} {
		dir := filepath.Join(t.TempDir(), "clone")
		h.Git("clone", "-q", "--no-single-branch", "--depth", depth, "file://"+h.Dir, dir)
		r := h.result(t.Context(), gitrepo.Repo{Dir: dir}, "main", "B")
		if len(r.Claims) != want || (len(r.Undecided) == 0) != (want > 0) {
			t.Errorf("depth %s: %q, undecided %v", depth, h.names(r), r.Undecided)
		}
		for _, err := range r.Undecided {
			if !gitrepo.IsIncomplete(err) {
				t.Errorf("depth %s: %v", depth, err)
			}
		}
	}
}
