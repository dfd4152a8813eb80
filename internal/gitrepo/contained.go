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

// maxMerges is how many tips are tried for having been squashed: each takes git
// about as long as a merge.
const maxMerges = 200

// Landed returns those of the tips in flight that the commit's base holds, and
// that have landed with that: the base is on the mainline, or on the branch that
// the tip is meant for. A base may also be of a branch that is in flight itself,
// and then says nothing of what it holds.
func (g Repo) Landed(ctx context.Context, c Commit, tips []ledger.CommitSummary) []string {
	if c.Base == "" || len(tips) == 0 {
		return nil
	}
	meant := func(ledger.CommitSummary) bool { return true }
	if !c.merged {
		out, err := g.Read(ctx, "for-each-ref", "--format=%(refname)", "--contains="+c.Base, remoteBranch)
		if err != nil {
			return nil
		}
		holders := strings.Fields(out)
		meant = func(tip ledger.CommitSummary) bool { return slices.Contains(holders, remoteBranch+tip.Target) }
	}
	var shas []string
	for _, tip := range tips {
		if meant(tip) {
			shas = append(shas, tip.SHA)
		}
	}
	if len(shas) == 0 {
		return nil
	}
	return g.contained(ctx, c.Base, shas)
}

// contained returns those of the tips, in their order, whose changes base
// already holds: an ancestor of it, or one that changes nothing when it is
// merged into it, as after a squash. It is as much as this clone can tell: tips
// that are not here are left out, and with a git older than 2.38 so are squashed
// ones.
func (g Repo) contained(ctx context.Context, base string, tips []string) []string {
	objects, err := g.objects(ctx)
	if err != nil {
		return nil
	}
	defer objects.close()
	here, err := objects.present(ctx, "commit", append([]string{base}, tips...))
	if err != nil || !here[base] {
		return nil
	}
	tips = slices.DeleteFunc(slices.Clone(tips), func(tip string) bool { return !here[tip] })
	beyond, err := objects.beyond(ctx, base, tips)
	if err != nil {
		return nil
	}
	tried := slices.DeleteFunc(slices.Clone(tips), func(tip string) bool { return !beyond[tip] })
	squashed := objects.squashed(ctx, base, tried[:min(len(tried), maxMerges)])
	return slices.DeleteFunc(tips, func(tip string) bool { return beyond[tip] && !squashed[tip] })
}

// beyond returns the commits that tips have and base has not.
func (o *objectStore) beyond(ctx context.Context, base string, tips []string) (map[string]bool, error) {
	command := o.command(ctx, "rev-list", "--stdin")
	command.Stdin = strings.NewReader("^" + base + "\n" + strings.Join(tips, "\n") + "\n")
	var stdout strings.Builder
	command.Stdout = &stdout
	if err := command.Run(); err != nil {
		return nil, failure(command, "rev-list", err)
	}
	beyond := make(map[string]bool)
	for _, sha := range strings.Fields(stdout.String()) {
		beyond[sha] = true
	}
	return beyond, nil
}

// squashed returns the tips of which a merge into base makes nothing but base.
func (o *objectStore) squashed(ctx context.Context, base string, tips []string) map[string]bool {
	tree, err := o.line(ctx, "rev-parse", base+"^{tree}")
	if err != nil || tree == "" {
		return nil
	}
	g := o.writable()
	found := make([]bool, len(tips))
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
				found[i] = err == nil && merged == tree
			}
		})
	}
	workers.Wait()
	squashed := make(map[string]bool)
	for i, tip := range tips {
		squashed[tip] = found[i]
	}
	return squashed
}

// isUsage reports whether git does not know what it was asked to do.
func isUsage(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && exit.ExitCode() == 129
}
