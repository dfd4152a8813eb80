package merges

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// claimed makes the ledger have claims, as "commit<-source on parent: kind".
func (h *history) claimed(claims ...string) {
	made := make(map[string][]Claim)
	for _, claim := range claims {
		fields := strings.Fields(strings.NewReplacer("<-", " ", ": ", " ").Replace(claim)) // commit, source, on, parent, kind
		commit := h.Git("rev-parse", fields[0])
		made[commit] = append(made[commit], Claim{attestation.MergeKind(fields[4]), h.Git("rev-parse", fields[1]),
			h.Git("rev-parse", fields[3])})
	}
	h.query.Claims = func(_ context.Context, sha string) ([]Claim, error) { return made[sha], nil }
}

// squash squashes a branch to the one that is checked out.
func (h *history) squash(name, of string) {
	h.do("merge -q --squash "+of, "commit -q -m "+name, "tag "+name)
}

// A claim that is made already is not made again. One of another kind or parent is, and so are those that an earlier
// search has missed although it has made later ones.
func TestClaimsAreMadeOnce(t *testing.T) {
	h := newHistory(t)
	h.Branch("other", "A", "s", "s")
	h.do("tag S other", "checkout -q topic", "merge -q --no-edit main", "tag U", "checkout -q main")
	h.squash("C", "topic")
	h.squash("D", "S")
	h.do("update-ref refs/pull/1/head U", "update-ref refs/pull/2/head S")
	for name, row := range map[string]struct {
		made, want []string
	}{
		"nothing": {nil, []string{"U<-T on B: update", "C<-U on B: squash", "C<-T on B: squash", "D<-S on C: squash"}},
		"all": {[]string{"U<-T on B: update", "C<-U on B: squash", "C<-T on B: squash", "D<-S on C: squash"},
			[]string{}},
		"the update": {[]string{"U<-T on B: update"},
			[]string{"C<-U on B: squash", "C<-T on B: squash", "D<-S on C: squash"}},
		"one of two of a commit": {[]string{"C<-U on B: squash", "D<-S on C: squash"},
			[]string{"U<-T on B: update", "C<-T on B: squash"}},
		"the last one": {[]string{"D<-S on C: squash"},
			[]string{"U<-T on B: update", "C<-U on B: squash", "C<-T on B: squash"}},
		"another kind": {[]string{"U<-T on B: rebase", "C<-U on B: squash", "C<-T on B: squash", "D<-S on C: squash"},
			[]string{"U<-T on B: update"}},
		"another parent": {[]string{"U<-T on A: update", "C<-U on B: squash", "C<-T on B: squash", "D<-S on C: squash"},
			[]string{"U<-T on B: update"}},
	} {
		t.Run(name, func(t *testing.T) {
			h.claimed(row.made...)
			if got := h.find("main", "B"); !slices.Equal(got, row.want) {
				t.Errorf("claims:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(row.want, "\n"))
			}
		})
	}
}

// A commit that has more claims than the search would make gets no others, which is noted once.
func TestClaimsOfOthersFillACommit(t *testing.T) {
	h := newHistory(t)
	h.known("topic", "T")
	h.squash("C", "topic")
	h.claimed("C<-A on B: squash", "C<-B on A: rebase", "C<-A on A: merge")
	f := h.findWithin(func(l *limits) { l.claims = 2 })
	if len(f.Claims) > 0 || len(f.Undecided) != 1 ||
		!strings.Contains(f.Undecided[0].Error(), "more sources than the 3 ") {
		t.Errorf("claims %v, undecided %v", f.Claims, f.Undecided)
	}
}

// What was searched long ago is not searched again.
func TestSearchEndsAtClaims(t *testing.T) {
	h := newHistory(t)
	h.known("topic", "T")
	h.squash("C", "topic")
	h.change("D")
	h.claimed("D<-A on C: squash")
	later := func(n int) {
		for range n {
			h.do("commit -q --allow-empty -m x")
		}
	}
	later(19)
	if got := h.find("main", "B"); !slices.Equal(got, []string{"C<-T on B: squash"}) {
		t.Errorf("claims after 20 commits: %q", got)
	}
	later(1)
	if got := h.find("main", "B"); len(got) > 0 {
		t.Errorf("claims after 21 commits: %q", got)
	}
}

// A search that begins within a rebase does not claim its last commit again, as the squash of the branch on the one
// before: the claim of the whole rebase would count no longer.
func TestSearchBeginsWithinARebase(t *testing.T) {
	h := newHistory(t)
	h.do("checkout -q topic")
	h.change("T2")
	h.do("checkout -q -b rebased", "rebase -q main", "tag C", "tag D C^", "checkout -q main", "merge -q --ff-only rebased")
	h.known("topic", "T2")
	if got := h.find("main", "B"); !slices.Equal(got, []string{"C<-T2 on B: rebase"}) {
		t.Errorf("claims: %q", got)
	}
	h.claimed("C<-T2 on B: rebase")
	for range 20 {
		h.do("commit -q --allow-empty -m x")
	}
	if got := h.find("main", "B"); len(got) > 0 {
		t.Errorf("claims after 20 commits: %q", got)
	}
}

// change commits a change that no branch has.
func (h *history) change(name string) {
	h.Commit("d", name)
	h.do("tag " + name)
}

// Claims are about the mainline that the forge protects: in no other job, and with no other commit as the parent.
func TestOnlyTheMainlineIsTheParent(t *testing.T) {
	for name, build := range map[string]func(h *history){
		"a squash onto a commit of a branch that was merged": func(h *history) {
			h.do("checkout -q -b stack A")
			h.change("P")
			h.do("checkout -q main", "merge -q --no-ff --no-edit stack", "checkout -q -b on P")
			h.Commit("c", "c")
			h.do("tag T2", "checkout -q -b forge P")
			h.squash("S", "T2")
			h.do("checkout -q main", "merge -q --no-ff --no-edit forge", "tag C")
			h.known("stack", "P")
			h.known("on", "T2")
		},
		"a rebase onto an unmerged branch": func(h *history) {
			h.do("checkout -q -b stack A")
			h.change("P")
			h.do("checkout -q topic", "rebase -q stack", "tag R", "checkout -q main")
			h.known("topic", "R", "T")
		},
		"an update from an unmerged branch": func(h *history) {
			h.do("checkout -q -b stack A")
			h.change("P")
			h.do("checkout -q topic", "merge -q --no-edit stack", "tag U", "checkout -q main")
			h.known("topic", "U", "T")
		},
		"a queue that follows a merged branch, and not the mainline": func(h *history) {
			h.do("merge -q --no-ff --no-edit topic", "checkout -q -b other T")
			h.Commit("s", "s")
			h.do("tag S", "checkout -q -b queue T")
			h.change("P")
			h.squash("Q", "S")
			h.do("update-ref refs/remotes/origin/gh-readonly-queue/main/pr-1-x Q", "checkout -q main")
			h.known("other", "S")
		},
		// Anybody with a token may register commits as the mainline's.
		"a merge whose second parent the ledger calls the mainline": func(h *history) {
			h.do("checkout -q topic", "merge -q --no-edit main", "tag U", "checkout -q main", "merge -q --ff-only topic")
			h.known("main", "B")
			h.query.Claims = func(context.Context, string) ([]Claim, error) { return nil, nil }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			build(h)
			main := strings.Fields(h.Git("rev-list", "--first-parent", "main"))
			r := h.result(t.Context(), gitrepo.Repo{Dir: h.Dir}, "main", "B")
			for _, m := range r.Claims {
				if !slices.Contains(main, m.Parent) {
					t.Errorf("claims: %q", h.names(r))
				}
			}
		})
	}

	h := newHistory(t)
	for _, rev := range []string{"T", "A"} {
		q := Query{Commit: h.Git("rev-parse", rev), Mainline: h.Git("rev-parse", "B"), Branch: "main"}
		_, err := Find(t.Context(), gitrepo.Repo{Dir: h.Dir}, q)
		if isMain := rev == "A"; errors.Is(err, errNotOnMainline) == isMain || gitrepo.IsIncomplete(err) {
			t.Errorf("%s: %v", rev, err)
		}
	}
}

// A job that runs late does not take the mainline, which is ahead of it, for a branch.
func TestLateJob(t *testing.T) {
	h := newHistory(t)
	h.do("update-ref refs/remotes/origin/topic T", "merge -q --no-ff --no-edit topic", "tag C",
		"update-ref refs/remotes/origin/main C", "symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main",
		"update-ref refs/pull/9/head C")
	for _, mainline := range []string{"C", "B"} { // a clone that is late, too, has no later tip
		if h.query.Mainline = h.Git("rev-parse", mainline); mainline == "B" {
			h.do("update-ref -d refs/pull/9/head")
		}
		if got := h.find("B", "A"); len(got) > 0 {
			t.Errorf("claims: %q", got)
		}
	}
}

// Anybody with a token may register a commit as the mainline's. It is a branch all the same.
func TestRegisteredAsTheMainlines(t *testing.T) {
	h := newHistory(t)
	h.known("main", "T")
	h.squash("C", "topic")
	if got := h.find("main", "B"); !slices.Equal(got, []string{"C<-T on B: squash"}) {
		t.Errorf("claims: %q", got)
	}
}

// Nobody can push copies of a branch to hide the one that was reviewed.
func TestCopiesDoNotHideABranch(t *testing.T) {
	for name, row := range map[string]struct {
		evidence []Evidence // of the copies, by turns
		reviewed Evidence
		isSquash bool // whether the copies are of what the mainline got, which resembles it more
	}{
		"copies without evidence":                   {[]Evidence{NoEvidence}, NoEvidence, false},
		"copies that were tested":                   {[]Evidence{Attested}, Reviewed, false},
		"copies of the squash":                      {[]Evidence{Attested}, Reviewed, true},
		"copies of the squash, of which no one ran": {[]Evidence{NoEvidence, Attested}, Reviewed, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.squash("C", "topic")
			source, parent := "T", "A"
			if row.isSquash {
				source, parent = "C", "B"
			}
			for i := range 20 {
				h.heads = append(h.heads,
					Head{fmt.Sprint("copy", i), h.copyOf(source, parent, i), row.evidence[i%len(row.evidence)]})
			}

			last := Head{"topic", h.Git("rev-parse", "T"), row.reviewed}
			if row.reviewed == NoEvidence { // the first of those with a tree is there
				h.heads = append([]Head{last}, h.heads...)
			} else {
				h.heads = append(h.heads, last)
			}
			r := h.result(t.Context(), gitrepo.Repo{Dir: h.Dir}, "main", "B")
			if !slices.Contains(h.names(r), "C<-T on B: squash") || len(r.Claims) > 12 {
				t.Errorf("claims %q, undecided %v", h.names(r), r.Undecided)
			}
		})
	}
}

// copyOf returns one of several commits on a parent with the files of another one.
func (h *history) copyOf(source, parent string, i int) string {
	return h.Git("commit-tree", source+"^{tree}", "-p", parent, "-m", fmt.Sprint("copy", i))
}

// However much there is, a search ends, and says what it has left out.
func TestSearchIsBounded(t *testing.T) {
	h := newHistory(t)
	h.do("checkout -q topic")
	for i := range 4 {
		h.Commit("t", fmt.Sprint(i))
	}
	h.do("tag T2", "checkout -q main")
	h.squash("C", "topic")
	for i := range 4 {
		h.heads = append(h.heads, Head{"", h.copyOf("T2", "A", i), Attested})
	}
	h.known("topic", "T2")

	for want, limit := range map[string]func(l *limits){
		"3 heads of branches were not searched":                      func(l *limits) { l.heads = 2 },
		"branches at least 3 commits ahead of main: 1; only their":   func(l *limits) { l.branch = 3 },
		"may be a squash of any of 5 branches, and only the 2 most ": func(l *limits) { l.tries = 2 },
		"may have more sources than the 2 that are claimed":          func(l *limits) { l.claims = 2 },
		"more than 1 pairs of commits may be merges":                 func(l *limits) { l.checks = 1 },
		"git took longer than 1ns to merge ":                         func(l *limits) { l.checkTime = 1 },
		"more than 0 commits were not decided":                       func(l *limits) { l.undecided, l.heads = 0, 1 },
	} {
		f := h.findWithin(limit)
		if !slices.ContainsFunc(f.Undecided, func(err error) bool { return strings.Contains(err.Error(), want) }) {
			t.Errorf("undecided %v, want %q", f.Undecided, want)
		}
	}
}

// findWithin searches up to C, with other limits.
func (h *history) findWithin(limit func(*limits)) *finder {
	h.t.Helper()
	g, c := gitrepo.Repo{Dir: h.Dir}, h.Git("rev-parse", "C")
	checker, err := g.MergeChecker(h.t.Context())
	must.OK(h.t, err)
	f := newFinder(checker, Query{Commit: c, Mainline: c, Branch: "main", Heads: h.heads, Claims: h.query.Claims})
	limit(&f.limits)
	f.Timeout = f.limits.checkTime
	must.OK(h.t, errors.Join(f.find(h.t.Context(), g), checker.Close()))
	return f
}

// If git fails to list what was renamed, the next commit asks again.
func TestOldNamesAreReadAgainAfterAFailure(t *testing.T) {
	h := newHistory(t)
	h.do("mv a renamed", "commit -q -m rename", "tag C")
	f := h.findWithin(func(*limits) {})
	f.renamed = nil
	checker, err := gitrepo.Repo{Dir: h.Dir}.MergeChecker(t.Context())
	must.OK(t, err)
	f.MergeChecker = checker
	failing, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.oldNames(failing, touched{"renamed": true}); err == nil {
		t.Error("no error although git was stopped")
	}
	old, err := f.oldNames(t.Context(), touched{"renamed": true})
	if must.OK(t, errors.Join(err, checker.Close())); !old["a"] {
		t.Errorf("old names %v, want a", old)
	}
}

// Branches that begin after a commit are not tried for it, however similar they are.
func TestNewBranchesSpendNoChecks(t *testing.T) {
	h := newHistory(t)
	h.do("checkout -q main")
	for i := range 10 {
		h.Commit("t", fmt.Sprint("before ", i))
	}
	h.do("branch new", "tag OLD")
	for i := range 10 {
		h.heads = append(h.heads, Head{"", h.Branch(fmt.Sprint("new", i), "new", "t", fmt.Sprint(i)), Attested})
	}
	h.do("tag N new3")
	h.squash("C", "new3")
	f := h.findWithin(func(l *limits) { l.checks = 20 })
	if got := h.names(f.Result); !slices.Equal(got, []string{"C<-N on OLD: squash"}) || len(f.Undecided) > 0 {
		t.Errorf("claims %q, undecided %v", got, f.Undecided)
	}
}

// A branch with a long history of its own does not hide others.
func TestLongBranchHidesNothing(t *testing.T) {
	h := newHistory(t)
	h.do("checkout -q --orphan pages")
	for i := range 30 {
		h.Commit("page", fmt.Sprint(i))
	}
	h.known("pages", "pages")
	h.known("topic", "T")
	h.do("checkout -q main")
	h.squash("C", "topic")
	f := h.findWithin(func(l *limits) { l.older, l.branch = 20, 10 })
	if got := h.names(f.Result); !slices.Equal(got, []string{"C<-T on B: squash"}) {
		t.Errorf("claims %q, undecided %v", got, f.Undecided)
	}
}

// At the deadline, a search returns what it has found. If it is canceled, or the ledger fails, that is an error or
// undecided.
func TestSearchEnds(t *testing.T) {
	build := func(t *testing.T) *history {
		h := newHistory(t)
		h.known("topic", "T")
		h.squash("C", "topic")
		return h
	}
	t.Run("at the deadline", func(t *testing.T) {
		h := build(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		r := h.resultUntil(ctx)
		if len(r.Undecided) != 1 || !strings.Contains(r.Undecided[0].Error(), "took too long") {
			t.Errorf("%+v", r)
		}
	})

	t.Run("when it is canceled", func(t *testing.T) {
		h := build(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := Find(ctx, gitrepo.Repo{Dir: h.Dir}, Query{
			Commit: h.Git("rev-parse", "C"), Mainline: h.Git("rev-parse", "C"),
			Heads: h.heads, Claims: func(context.Context, string) ([]Claim, error) { cancel(); return nil, nil }})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})

	t.Run("with an error of the ledger", func(t *testing.T) {
		h := build(t)
		broken := errors.New("out of order")
		c := h.Git("rev-parse", "C")
		_, err := Find(t.Context(), gitrepo.Repo{Dir: h.Dir}, Query{
			Commit: c, Mainline: c, Branch: "main", Heads: h.heads,
			Claims: func(context.Context, string) ([]Claim, error) { return nil, broken }})
		if !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

func (h *history) resultUntil(ctx context.Context) Result {
	h.t.Helper()
	r, err := Find(ctx, gitrepo.Repo{Dir: h.Dir}, Query{})
	must.OK(h.t, err)
	return r
}

// A partial clone cannot decide, and says why.
func TestPartialCloneIsUndecided(t *testing.T) {
	h := newHistory(t)
	h.known("topic", "T")
	h.squash("C", "topic")
	h.do("config uploadpack.allowFilter true")
	for _, filter := range []string{"blob:none", "tree:0"} {
		dir := filepath.Join(t.TempDir(), "clone")
		h.Git("clone", "-q", "--bare", "--filter="+filter, "file://"+h.Dir, filepath.Join(dir, ".git"))
		r := h.result(t.Context(), gitrepo.Repo{Dir: dir}, "main", "B")
		if len(r.Claims) > 0 || len(r.Undecided) == 0 || !gitrepo.IsIncomplete(r.Undecided[0]) {
			t.Errorf("%s: claims %q, undecided %v", filter, h.names(r), r.Undecided)
		}
	}
}
