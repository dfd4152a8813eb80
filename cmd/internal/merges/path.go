package merges

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerd/ledgerd/internal/gitrepo"
	"github.com/ledgerd/ledgerd/ledger"
)

// log reads commits, as git log lists them.
func (f *finder) log(ctx context.Context, args ...string) ([]commit, error) {
	args = append([]string{"log", "-z", "--no-show-signature", "--format=%H%n%P%n%T%n%an%n%ae%n%at%n%s"}, args...)
	out, err := f.Read(ctx, args...)
	if err != nil {
		return nil, err
	}
	var list []commit
	for text := range strings.SplitSeq(out, "\x00") {
		fields := strings.SplitN(text, "\n", 4)
		if len(fields) != 4 {
			continue
		}
		list = append(list, commit{fields[0], strings.Fields(fields[1]), fields[2], fields[3]})
	}
	return list, nil
}

// errNotOnMainline is the error for a commit about which nothing may be claimed.
var errNotOnMainline = errors.New("claims are made in jobs of the mainline")

// readMainline reads which commits are on the mainline, and returns those about which claims may be missing, oldest
// first: the last ones up to the commit of the query, back to one that has claims, and some before it, since a search
// may have been incomplete.
func (f *finder) readMainline(ctx context.Context) ([]step, error) {
	later, err := f.laterThanBefore(ctx)
	if err != nil {
		return nil, err
	}
	var path []step
	isBelow, isAtEnd := false, false
	tip := f.query.Mainline
	for tip != "" && !isAtEnd && len(f.main) < f.limits.older {
		list, err := f.log(ctx, "--first-parent", "--max-count="+strconv.Itoa(f.limits.commits), tip)
		if err != nil {
			return nil, err
		}
		tip = ""
		for _, c := range list {
			f.main[c.sha] = true
			isBelow = isBelow || c.sha == f.query.Commit
			s, isDone, err := f.readStep(ctx, c, isBelow, later)
			if err != nil {
				return nil, err
			}
			if tip = s.parent; isBelow {
				path = append(path, s)
			}
			isAtEnd = len(path) >= f.limits.commits || isDone && len(path) > f.limits.lookback
			if isAtEnd || len(c.parents) > 0 && tip != c.parents[0] {
				break
			}
		}
	}
	if len(path) == 0 {
		return nil, f.whyNotOnMainline(ctx)
	}
	slices.Reverse(path)
	return path, errors.Join(f.readOlder(ctx, tip), f.checkEnd(ctx, path[0]))
}

// readStep returns a commit of the mainline as a step. isDone reports whether it has claims, if they are asked for.
func (f *finder) readStep(ctx context.Context, c commit, asksClaims bool, later map[string]bool) (s step, isDone bool,
	err error) {
	s = step{commit: c}
	var claims []Claim
	if asksClaims {
		if claims, err = f.claimsOf(ctx, c.sha); err != nil {
			return s, false, err
		}
	}
	s.parent, s.source = sides(c, isSwapped(c, later, claims))
	return s, len(claims) > 0, nil
}

// laterThanBefore returns the commits of the mainline that contain its earlier tip, and the tip.
func (f *finder) laterThanBefore(ctx context.Context) (map[string]bool, error) {
	before := f.query.Before
	if !ledger.IsCommit(before) {
		return nil, nil
	}
	present, err := f.Present(ctx, []string{before})
	if err != nil || !present[before] {
		return nil, err
	}
	out, err := f.Read(ctx, "rev-list", "--ancestry-path", "--max-count="+strconv.Itoa(f.limits.older),
		before+".."+f.query.Mainline)
	later := map[string]bool{before: true}
	for sha := range strings.FieldsSeq(out) {
		later[sha] = true
	}
	return later, err
}

// isSwapped reports whether the second parent of a merge is the one that was on the mainline: so it is if somebody has
// merged the mainline into a branch, and moved the mainline forward to that. It is known from what the forge says that
// the mainline had before, or from a claim.
func isSwapped(c commit, later map[string]bool, claims []Claim) bool {
	if len(c.parents) != 2 {
		return false
	}
	first, second := c.parents[0], c.parents[1]
	return later[second] && !later[first] ||
		slices.ContainsFunc(claims, func(k Claim) bool { return k.Parent == second && k.Source == first })
}

// whyNotOnMainline returns why the commit of the query was not found on the mainline.
func (f *finder) whyNotOnMainline(ctx context.Context) error {
	err := fmt.Errorf("commit %s is not among the first parents of %s (%s): %w", ledger.Short(f.query.Commit),
		f.query.Branch, ledger.Short(f.query.Mainline), errNotOnMainline)
	shallow, shallowErr := f.IsShallow(ctx)
	switch {
	case shallowErr != nil:
		return shallowErr
	case shallow:
		return fmt.Errorf("%w, or in this shallow clone, %w", err, gitrepo.ErrDeepen)
	}
	return err
}

// checkEnd notes that a shallow clone ends at the first step of a path.
func (f *finder) checkEnd(ctx context.Context, first step) error {
	if first.parent != "" {
		return nil
	}
	shallow, err := f.IsShallow(ctx)
	if shallow {
		f.undecided(fmt.Errorf("the clone ends at %s: %w", ledger.Short(first.sha), gitrepo.ErrDeepen))
	}
	return err
}

// readOlder adds a commit of the mainline and those before it.
func (f *finder) readOlder(ctx context.Context, tip string) error {
	if tip == "" {
		return nil
	}
	out, err := f.Read(ctx, "rev-list", "--first-parent", "--max-count="+strconv.Itoa(f.limits.older), tip)
	for sha := range strings.FieldsSeq(out) {
		f.main[sha] = true
	}
	return err
}

// sides returns the parent of a commit that is on the mainline, and the other one.
func sides(c commit, swapped bool) (parent, source string) {
	switch {
	case len(c.parents) == 0:
		return "", ""
	case len(c.parents) != 2:
		return c.parents[0], ""
	case swapped:
		return c.parents[1], c.parents[0]
	}
	return c.parents[0], c.parents[1]
}

// claimsOf returns the claims about a commit that are made already.
func (f *finder) claimsOf(ctx context.Context, commit string) ([]Claim, error) {
	if f.query.Claims == nil {
		return nil, nil
	}
	return f.query.Claims(ctx, commit)
}
