package gitrepo

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Heads are fetched although origin lacks some, and what is no ID is never an argument of git.
func TestFetchHeads(t *testing.T) {
	h := newHostedRepo(t, 3)
	gone := strings.Repeat("1", 40)
	for name, row := range map[string]struct {
		commits []string
		want    bool // whether the head of the pull request is fetched
	}{
		"none":                 {nil, false},
		"a pull request":       {[]string{h.head}, true},
		"one that is gone":     {[]string{gone, h.head, strings.Repeat("2", 40)}, true},
		"options and refspecs": {[]string{"--upload-pack=touch x", h.head, "+refs/heads/main:refs/heads/evil"}, true},
		"only refspecs":        {[]string{"refs/pull/1/head", "", h.head[:12], strings.ToUpper(h.head)}, false},
		"more than one fetch":  {[]string{gone, gone[:39] + "2", gone[:39] + "3", h.merge, h.head}, true},
	} {
		for _, depth := range []string{"--depth=1", "--no-recurse-submodules"} {
			t.Run(name+" "+depth, func(t *testing.T) {
				h.Git("branch", "--quiet", "--force", "feature", h.base)
				clone := h.clone(depth, "+refs/heads/main:refs/remotes/origin/main")
				_, err := clone.FetchHeads(t.Context(), row.commits, 0)
				must.OK(t, err)
				present, err := clone.lacking(t.Context(), []string{h.head})
				must.OK(t, err)

				if got := len(present) == 0; got != row.want {
					t.Errorf("fetched %v, want %v", got, row.want)
				}
				if refs := mustGit(t, clone, "", "for-each-ref", "refs/heads/evil"); refs != "" {
					t.Error(refs)
				}
				if got := mustGit(t, clone, "", "rev-parse", "refs/remotes/origin/feature"); got != h.base {
					t.Errorf("origin/feature is %s", got)
				}
			})
		}
	}
}

// Each attempt deepens a shallow clone, the last one to all. None takes history away.
func TestFetchHeadsDeepens(t *testing.T) {
	h := newHostedRepo(t, 700)
	clone := h.clone("--depth=1", "+refs/heads/main:refs/remotes/origin/main")
	mustGit(t, clone, "", "checkout", "--quiet", "--detach", h.tip)
	count := func() int {
		n, err := strconv.Atoi(mustGit(t, clone, "", "rev-list", "--count", "--all"))
		must.OK(t, err)
		return n
	}
	for attempt, most := range []int{200, 600, 704} {
		least := count()
		more, err := clone.FetchHeads(t.Context(), nil, attempt)
		if n := count(); err != nil || more != (attempt < 2) || n <= least || n > most {
			t.Errorf("attempt %d: %d commits after %d, more %v, %v", attempt, n, least, more, err)
		}
	}
	if more, err := clone.FetchHeads(t.Context(), nil, 0); more || err != nil {
		t.Errorf("a clone that has all: more %v, %v", more, err)
	}

	clone = h.clone("--depth=200", "+refs/heads/main:refs/remotes/origin/main")
	mustGit(t, clone, "", "checkout", "--quiet", "--detach", h.tip)
	least := count()
	_, err := clone.FetchHeads(t.Context(), nil, 0)
	if n := count(); err != nil || n < least {
		t.Errorf("%d commits after %d: %v", n, least, err)
	}
}

// However many commits origin lacks, it is asked only so often.
func TestFetchHeadsAsksOriginOnlySoOften(t *testing.T) {
	h := newHostedRepo(t, 3)
	clone := h.clone("--depth=1", "+refs/heads/main:refs/remotes/origin/main")
	var gone []string
	for i := range 200 {
		gone = append(gone, strings.Repeat("1", 36)+strconv.Itoa(1000+i))
	}
	left := 5
	if err := clone.fetchSome(t.Context(), []string{remoteName}, gone, &left); err != nil || left != 0 {
		t.Errorf("%d fetches left, %v", left, err)
	}
}
