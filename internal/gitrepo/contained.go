package gitrepo

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ledgerd/ledgerd/ledger"
)

// maxMerges limits how many tips are checked for a squash merge. Each check takes
// git about as long as a merge.
const maxMerges = 200

// Landed returns the shas of the tips in flight that have landed: the commit's base
// contains them and is on the mainline or on the tip's target. A base on a branch
// that is still in flight does not count.
func (g Repo) Landed(ctx context.Context, c Commit, tips []ledger.CommitSummary) []string {
	if c.Base == "" || len(tips) == 0 {
		return nil
	}
	merged := func(ledger.CommitSummary) bool { return true }
	if !c.merged {
		out, err := g.Read(ctx, "for-each-ref", "--format=%(refname)", "--contains="+c.Base, remoteBranch)
		if err != nil {
			return nil
		}
		branches := strings.Fields(out)
		merged = func(tip ledger.CommitSummary) bool { return slices.Contains(branches, remoteBranch+tip.Target) }
	}

	var shas []string
	for _, tip := range tips {
		if merged(tip) {
			shas = append(shas, tip.SHA)
		}
	}
	if len(shas) == 0 {
		return nil
	}
	return g.contained(ctx, c.Base, shas)
}

// contained returns the tips whose changes base already contains, in the given
// order. Such a tip is an ancestor of base, or its merge into base changes nothing,
// as after a squash merge. Tips that this clone lacks are left out. Git older than
// 2.38 does not detect squash merges.
func (g Repo) contained(ctx context.Context, base string, tips []string) []string {
	objects, err := g.objects(ctx)
	if err != nil {
		return nil
	}
	defer objects.close()
	present, err := objects.present(ctx, "commit", append([]string{base}, tips...))
	if err != nil || !present[base] {
		return nil
	}

	tips = slices.DeleteFunc(slices.Clone(tips), func(tip string) bool { return !present[tip] })
	ahead, err := objects.ahead(ctx, base, tips)
	if err != nil {
		return nil
	}
	unmerged := slices.DeleteFunc(slices.Clone(tips), func(tip string) bool { return !ahead[tip] })
	squashed := objects.squashed(ctx, base, unmerged[:min(len(unmerged), maxMerges)])
	return slices.DeleteFunc(tips, func(tip string) bool { return ahead[tip] && !squashed[tip] })
}

// ahead returns the commits that are reachable from tips but not from base.
func (o *objectStore) ahead(ctx context.Context, base string, tips []string) (map[string]bool, error) {
	command := o.command(ctx, "rev-list", "--stdin")
	command.Stdin = strings.NewReader("^" + base + "\n" + strings.Join(tips, "\n") + "\n")
	var stdout strings.Builder
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		return nil, failure(command, "rev-list", err)
	}
	ahead := make(map[string]bool)
	for _, sha := range strings.Fields(stdout.String()) {
		ahead[sha] = true
	}
	return ahead, nil
}

// squashed returns the tips whose merge into base changes nothing. It merges them
// in parallel.
func (o *objectStore) squashed(ctx context.Context, base string, tips []string) map[string]bool {
	tree, err := o.line(ctx, "rev-parse", base+"^{tree}")
	if err != nil || tree == "" {
		return nil
	}

	g := o.writable()
	unchanged := make([]bool, len(tips))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(tips); i = int(next.Add(1)) - 1 {
				merged, err := g.Read(ctx, "merge-tree", "--write-tree", base, tips[i])
				if isUsage(err) || ctx.Err() != nil {
					return
				}
				merged, _, _ = strings.Cut(merged, "\n")
				unchanged[i] = err == nil && merged == tree
			}
		})
	}
	workers.Wait()

	squashed := make(map[string]bool)
	for i, tip := range tips {
		squashed[tip] = unchanged[i]
	}
	return squashed
}

// isUsage reports whether git rejected the command line, as versions without the
// command do.
func isUsage(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == 129
}
