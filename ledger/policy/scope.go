package policy

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A scope says whether a requirement applies to a commit.
type scope struct {
	// excluded says why it does not apply. It is empty if it applies.
	excluded string
	// unsure says why it applies, although finding out whether it does takes too long.
	unsure string
}

// maxMatching limits the steps of matching the globs of a contract: that many take about a
// millisecond. By the rules of version 1, it is glob.MaxMatching.
const maxMatching = 1 << 18

// scopes returns the scope of each requirement. It is nil if all apply to every commit. Each glob
// may take an equal part of the steps, so that the result does not depend on the order of
// requirements.
func (c *Contract) scopes(f *Facts) []scope {
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
	list := make([]scope, len(c.Requirements))
	for i := range c.Requirements {
		list[i] = c.Requirements[i].scope(f, steps/globs)
	}
	return list
}

// scope returns the scope of the requirement. If matching would take more steps for one
// glob, it applies, and the scope says why. It also applies without a change record,
// because the commit may have changed any path.
func (r *Requirement) scope(f *Facts, steps int) (s scope) {
	if len(r.Branches) > 0 {
		switch matches, sure := glob.AnyMatch(r.Branches, f.Targets, steps*len(r.Branches)); {
		case !sure:
			s.unsure = "matching the target branches takes too long"
		case matches:
		case len(f.Targets) == 0:
			return scope{excluded: "the commit has no target branch"}
		default:
			return scope{excluded: "the target branch is " + text.JoinFirst(f.Targets, " and ")}
		}
	}
	if len(r.Paths) == 0 || !f.HasChanges {
		return s
	}

	if f.ManyChanges || len(f.Changes) > glob.MaxMatched {
		return scope{unsure: fmt.Sprintf("the commit changes more than %d paths", glob.MaxMatched)}
	}
	switch matches, sure := glob.AnyMatch(r.Paths, f.Changes, steps*len(r.Paths)); {
	case !sure:
		return scope{unsure: "matching the changed paths takes too long"}
	case !matches:
		return scope{excluded: "no changed path matches " + text.JoinFirst(r.Paths, " or ")}
	}
	return s
}
