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

// A walk follows the mainline from its tip.
type walk struct {
	later   map[string]bool // the commits that contain the tip that the mainline had before
	tip     string          // of what is left, or "" at the end of the history
	path    []step          // from the commit of the query on, the latest first
	isBelow bool            // whether the commit of the query was reached
	isAtEnd bool            // whether the path is complete
}

// readMainline reads which commits are on the mainline, and returns those about which claims may be missing, oldest
// first: the last ones up to the commit of the query, back to one that has claims, and some before it, since a search
// may have been incomplete.
func (f *finder) readMainline(ctx context.Context) ([]step, error) {
	later, err := f.laterThanBefore(ctx)
	if err != nil {
		return nil, err
	}
	w := walk{later: later, tip: f.query.Mainline}
	for w.tip != "" && !w.isAtEnd && len(f.main) < f.limits.older {
		if err := f.follow(ctx, &w); err != nil {
			return nil, err
		}
	}

	switch {
	case !w.isBelow:
		return nil, f.whyNotOnMainline()
	case len(w.path) == 0:
		return nil, nil
	}
	slices.Reverse(w.path)
	for i, s := range w.path {
		f.places[s.sha] = i
	}
	f.checkEnd(w.path[0])
	return w.path, f.readOlder(ctx, w.tip)
}

// follow reads the next commits of the mainline, up to one whose second parent was on it.
func (f *finder) follow(ctx context.Context, w *walk) error {
	list, err := f.log(ctx, "--first-parent", "--max-count="+strconv.Itoa(f.limits.commits), w.tip)
	if err != nil {
		return err
	}
	w.tip = ""
	for _, c := range list {
		if err := f.pass(ctx, w, c); err != nil {
			return err
		}
		if w.isAtEnd || len(c.parents) > 0 && w.tip != c.parents[0] {
			break
		}
	}
	return nil
}

// pass notes a commit of the mainline. Which claims it has is asked only of those on the path.
func (f *finder) pass(ctx context.Context, w *walk, c commit) error {
	f.main[c.sha] = true
	w.isBelow = w.isBelow || c.sha == f.query.Commit
	var claims []Claim
	if w.isBelow {
		var err error
		if claims, err = f.claimsOf(ctx, c.sha); err != nil {
			return err
		}
	}

	s := step{commit: c}
	swapped, known := isSwapped(c, w.later, claims)
	if !known && f.isBranch(c.parents[0]) {
		f.undecided(fmt.Errorf("it is not known which parent of %s was on %s: %s was the head of a branch, too "+
			"(claim the merge with 'ledgerd attest')", ledger.Short(c.sha), f.query.Branch, ledger.Short(c.parents[0])))
		w.tip, w.isAtEnd = "", true
		return nil
	}
	s.parent, s.source = sides(c, swapped)
	w.tip = s.parent
	if w.isBelow {
		w.path = append(w.path, s)
		w.isAtEnd = len(w.path) >= f.limits.commits || len(claims) > 0 && len(w.path) > f.limits.lookback
	}
	return nil
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

// isSwapped reports whether the second parent of a merge is the one that was on the mainline. This happens if somebody
// merges the mainline into a branch, and moves the mainline forward to the merge. It is known from what the forge says
// that the mainline had before, or from a claim.
func isSwapped(c commit, later map[string]bool, claims []Claim) (swapped, known bool) {
	if len(c.parents) != 2 {
		return false, true
	}
	first, second := c.parents[0], c.parents[1]
	if later[first] != later[second] {
		return later[second], true
	}
	for _, k := range claims {
		if k.Source == first || k.Source == second {
			return k.Source == first, true
		}
	}
	return false, false
}

// isBranch reports whether a commit is or was the head of a branch.
func (f *finder) isBranch(sha string) bool {
	return slices.ContainsFunc(f.named, func(h Head) bool { return h.SHA == sha && h.Branch != "" })
}

// whyNotOnMainline returns why the commit of the query was not found on the mainline.
func (f *finder) whyNotOnMainline() error {
	err := fmt.Errorf("commit %s is not among the first parents of %s (%s): %w", ledger.Short(f.query.Commit),
		f.query.Branch, ledger.Short(f.query.Mainline), errNotOnMainline)
	if f.IsShallow() {
		return fmt.Errorf("%w, or in this shallow clone, %w", err, gitrepo.ErrDeepen)
	}
	return err
}

// checkEnd notes that a shallow clone ends at the first step of a path.
func (f *finder) checkEnd(first step) {
	if first.parent == "" && f.IsShallow() {
		f.undecided(fmt.Errorf("the clone ends at %s: %w", ledger.Short(first.sha), gitrepo.ErrDeepen))
	}
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
	claims, err := f.query.Claims(ctx, commit)
	if err != nil {
		return nil, claimsError{err}
	}
	return claims, nil
}

// A claimsError is why the claims of a commit were not read. It ends the search.
type claimsError struct{ error }

func (e claimsError) Unwrap() error { return e.error }
