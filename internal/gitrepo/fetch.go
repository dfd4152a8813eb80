package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// The limits of fetching what a clone lacks.
const (
	maxFetchTime  = 2 * time.Minute
	maxBoundaries = 1000 // of a shallow clone; their ids are on one command line
)

// fetchDepths are the depths to which a shallow clone is deepened, one after the other,
// until it has the base of a commit. The last one is git's for the whole history.
var fetchDepths = [...]int{64, 512, 4096, 1<<31 - 1}

// ReadCommit reads a commit from the repository. If the clone lacks the commit, its base or
// the branch of its base, and q.Fetch is set, it fetches what is missing.
func (g Repo) ReadCommit(ctx context.Context, q Query) (Commit, error) {
	c, err := g.readCommit(ctx, q)
	if q.Fetch && (lacksHistory(c, err) || err == nil && g.lacksBaseBranch(ctx, q)) {
		return g.readFetched(ctx, q)
	}
	return c, err
}

// lacksBaseBranch reports whether a commit was compared with the mainline because the clone
// lacks the branch of the remote that it should be compared with.
func (g Repo) lacksBaseBranch(ctx context.Context, q Query) bool {
	if q.Base != "" || q.BaseBranch == "" {
		return false
	}
	ref := remoteBranch + q.BaseBranch
	tips, err := g.tips(ctx, ref)
	return err == nil && tips[ref] == ""
}

// readFetched reads a commit like readCommit, and fetches what the clone lacks for that.
// It changes no branch and no file of the work tree, only refs of the remote.
func (g Repo) readFetched(ctx context.Context, q Query) (c Commit, err error) {
	limited, cancel := context.WithTimeout(ctx, maxFetchTime)
	defer cancel()
	for _, depth := range fetchDepths {
		shallow, fetchErr := g.fetchHistory(limited, q, depth)
		c, err = g.readCommit(ctx, q)
		if !lacksHistory(c, err) {
			break
		}

		if fetchErr != nil && limited.Err() != nil && ctx.Err() == nil {
			fetchErr = fmt.Errorf("git fetch took longer than %v", maxFetchTime)
		}
		if fetchErr != nil && err != nil {
			return c, fmt.Errorf("%w, and fetching it failed: %w", err, fetchErr)
		}
		if fetchErr != nil {
			c.ChangesErr = fmt.Errorf("%w, and fetching it failed: %w", c.ChangesErr, fetchErr)
		}
		if fetchErr != nil || !shallow {
			break
		}
	}
	return c, err
}

// lacksHistory reports whether a commit could be read better if the clone had more.
func lacksHistory(c Commit, err error) bool {
	if err != nil {
		return IsIncomplete(err)
	}
	return IsIncomplete(c.ChangesErr)
}

// IsIncomplete reports whether the cause of an error is that the clone lacks history: the
// base, the parents or the mainline of a commit, or the commit itself.
func IsIncomplete(err error) bool {
	_, missing := errors.AsType[missingCommit](err)
	return missing || errors.Is(err, errShallow) || errors.Is(err, ErrDeepen) || errors.Is(err, errMainline) ||
		errors.Is(err, errPartialMerge)
}

// fetchHistory fetches the mainline and the target, the commit if the clone lacks it, and
// the history of a shallow clone up to a depth. It reports whether the clone was shallow.
func (g Repo) fetchHistory(ctx context.Context, q Query, depth int) (shallow bool, err error) {
	branches, err := g.remoteBranches(ctx, q)
	if err != nil {
		return false, err
	}
	boundaries, err := g.boundaries(ctx)
	if err != nil {
		return false, err
	}
	shallow = len(boundaries) > 0

	var wants []string
	for _, branch := range branches {
		wants = append(wants, "+"+localBranch+branch+":"+remoteBranch+branch)
	}
	if ledger.IsCommit(q.Rev) {
		if sha, err := g.commit(ctx, q.Rev); err != nil || sha == "" {
			wants = append(wants, q.Rev)
		}
	}
	// The boundaries are tips to deepen from: the commit may be on no branch.
	if len(boundaries) <= maxBoundaries {
		wants = append(wants, boundaries...)
	}
	if len(wants) == 0 {
		return shallow, errors.New("origin has no such branch")
	}
	if shallow {
		return true, g.fetch(ctx, append([]string{"--depth=" + strconv.Itoa(depth), remoteName}, wants...)...)
	}
	return false, g.fetch(ctx, append([]string{remoteName}, wants...)...)
}

// remoteBranches returns the branches of origin that mainline and base use: its HEAD, the
// default branch in the ledger, the target and the base.
func (g Repo) remoteBranches(ctx context.Context, q Query) ([]string, error) {
	head, err := g.line(ctx, "symbolic-ref", "--quiet", remoteBranch+"HEAD")
	if err != nil {
		return nil, err
	}
	fallback := "main"
	if q.DefaultBranch != nil {
		if fallback, err = q.DefaultBranch(); err != nil {
			return nil, err
		}
	}
	base, ok := strings.CutPrefix(strings.TrimPrefix(q.Base, "refs/remotes/"), "origin/")
	if !ok {
		base = ""
	}
	var refs []string
	for _, name := range []string{cmp.Or(strings.TrimPrefix(head, remoteBranch), fallback), q.Target, q.BaseBranch, base} {
		isBranch := name != "" && (ledger.Registration{Branch: name}).Check() == nil
		if ref := localBranch + name; isBranch && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}

	heads, err := g.remoteRefs(ctx, refs)
	if err != nil {
		return nil, err
	}
	var branches []string
	for _, ref := range refs {
		if heads[ref] != "" {
			branches = append(branches, strings.TrimPrefix(ref, localBranch))
		}
	}
	return branches, nil
}

// remoteRefs asks origin which commits refs point to. It leaves out those that origin does not have.
func (g Repo) remoteRefs(ctx context.Context, refs []string) (map[string]string, error) {
	out, err := g.network(ctx, append([]string{"ls-remote", remoteName}, refs...)...)
	if err != nil {
		return nil, err
	}
	heads := make(map[string]string)
	for line := range strings.Lines(out) {
		sha, ref, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if slices.Contains(refs, ref) { // a pattern also matches the ends of other refs
			heads[ref] = sha
		}
	}
	return heads, nil
}

// RemoteHead asks origin for the commit of one of its branches, for at most 10 seconds. It is empty if there is no
// such branch.
func (g Repo) RemoteHead(ctx context.Context, branch string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ref := localBranch + branch
	heads, err := g.remoteRefs(ctx, []string{ref})
	return heads[ref], err
}

// boundaries returns the commits of a shallow clone whose parents it lacks.
func (g Repo) boundaries(ctx context.Context) ([]string, error) {
	name, err := g.gitPath(ctx, "shallow")
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// endAbove returns a commit above the merge bases of others whose parents a shallow clone lacks, so that there may be
// better bases. It is empty if there is no such commit.
func (g Repo) endAbove(ctx context.Context, bases []string, commits ...string) (string, error) {
	ends, err := g.boundaries(ctx)
	if err != nil || len(ends) == 0 {
		return "", err
	}
	isEnd := make(map[string]bool, len(ends))
	for _, sha := range ends {
		isEnd[sha] = true
	}

	args := slices.Concat([]string{noGraph, noGraphValue, "rev-list"}, commits, []string{"--not"}, bases)
	out, err := g.Read(ctx, args...)
	if err != nil {
		return "", err
	}
	for sha := range strings.FieldsSeq(out) {
		if isEnd[sha] {
			return sha, nil
		}
	}
	return "", nil
}

// FetchCommit fetches a commit that the clone lacks, without its history. It is a no-op if
// the clone has the commit.
func (g Repo) FetchCommit(ctx context.Context, sha string) error {
	if found, err := g.commit(ctx, sha); err != nil || found != "" {
		return err
	}
	boundaries, err := g.boundaries(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, maxFetchTime)
	defer cancel()
	if len(boundaries) > 0 {
		return g.fetch(ctx, "--depth=1", remoteName, sha)
	}
	return g.fetch(ctx, remoteName, sha)
}

func (g Repo) fetch(ctx context.Context, args ...string) error {
	_, err := g.network(ctx, append([]string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules"}, args...)...)
	return err
}
