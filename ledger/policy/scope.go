package policy

import (
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/policy/scope"
)

// maxMatching limits the steps of matching the globs of a contract: that many take about a
// millisecond. By the rules of version 1, it is glob.MaxMatching.
const maxMatching = 1 << 18

// scopes returns the scope of each requirement. It is nil if all apply to every commit.
func (c *Contract) scopes(f *Facts) []scope.Scope {
	if !c.NeedsChanges() {
		return c.scopesOf(f.Targets, scope.Changes{})
	}
	return c.scopesOf(f.Targets, c.ChangesOf(f))
}

// scopesOf is like scopes, for commits with the given targets and changes. Each glob may take an equal part of the
// steps, so that the result does not depend on the order of requirements.
func (c *Contract) scopesOf(targets []string, ch scope.Changes) []scope.Scope {
	globs := 0
	for i := range c.Requirements {
		globs += len(c.Requirements[i].Paths) + len(c.Requirements[i].Branches)
	}
	if globs == 0 {
		return nil
	}

	steps := maxMatching
	if c.Rules < 2 {
		steps = glob.MaxMatching
	}
	list := make([]scope.Scope, len(c.Requirements))
	for i := range c.Requirements {
		r := &c.Requirements[i]
		list[i] = scope.Query{Branches: r.Branches, Paths: r.Paths, Steps: steps / globs}.Of(targets, ch)
	}
	return list
}

// ChangesOf returns what a commit changes: what any of the change records about it says. A contract of a release before
// version 4 of the rules believes what registrations claim.
func (c *Contract) ChangesOf(f *Facts) (ch scope.Changes) {
	switch {
	case !c.SignsChanges() && f.ManyChanges:
		return scope.Many()
	case !c.SignsChanges():
		return scope.Changes{IsKnown: f.HasChanges, Paths: f.Changes}
	}

	records := slices.DeleteFunc(slices.Clone(Latest(f.Evidence)), func(e Evidence) bool {
		return !e.isChanges() || e.Distrusted
	})
	if len(records) == 0 {
		return scope.Changes{Unknown: "nobody has signed which paths the commit changes"}
	}
	ch.IsKnown = true
	slices.SortFunc(records, func(a, b Evidence) int { return strings.Compare(b.Attestation, a.Attestation) })
	for _, e := range records {
		ch.Paths, ch.Bases = append(ch.Paths, e.Paths...), append(ch.Bases, e.Base)
	}
	slices.Sort(ch.Paths)
	ch.Paths = slices.Compact(ch.Paths)
	return ch
}
