// Package scope says whether a requirement with globs applies to a commit.
package scope

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Scope says whether a requirement applies to a commit.
type Scope struct {
	// Excluded says why it does not apply. It is empty if it applies.
	Excluded string
	// Unsure says why it applies, although it may not be about what the commit changes.
	Unsure string
}

// Changes are the paths that commits change.
type Changes struct {
	// IsKnown reports whether Paths are all that are changed, with the old paths of renames. If not, the commits may
	// have changed any path.
	IsKnown bool
	Paths   []string
	// Bases are the commits from which the commit differs in these paths. They are those of signed records alone, of the
	// newest first.
	Bases []string
	// Unknown may say why they are not known.
	Unknown string
}

// Many returns changes of more paths than globs are matched with.
func Many() Changes {
	return Changes{Unknown: fmt.Sprintf("the commit changes more than %d paths", glob.MaxMatched)}
}

// A Query says what a requirement is about.
type Query struct {
	Branches, Paths []string
	// Steps limits those of matching one glob.
	Steps int
}

// Of returns the scope of a requirement for commits with the given targets and changes. If matching would take more
// steps for one glob, it applies, and the scope says why. It also applies if the changed paths are not known.
func (q Query) Of(targets []string, ch Changes) (s Scope) {
	if len(q.Branches) > 0 {
		switch matches, sure := glob.AnyMatch(q.Branches, targets, q.Steps*len(q.Branches)); {
		case !sure:
			s.Unsure = "matching the target branches takes too long"
		case matches:
		case len(targets) == 0:
			return Scope{Excluded: "the commit has no target branch"}
		default:
			return Scope{Excluded: "the target branch is " + text.JoinFirst(targets, " and ")}
		}
	}
	if len(q.Paths) == 0 {
		return s
	}

	if ch.IsKnown && len(ch.Paths) > glob.MaxMatched {
		ch = Many()
	}
	if !ch.IsKnown {
		if ch.Unknown != "" {
			s.Unsure = ch.Unknown
		}
		return s
	}
	switch matches, sure := glob.AnyMatch(q.Paths, ch.Paths, q.Steps*len(q.Paths)); {
	case !sure:
		return Scope{Unsure: "matching the changed paths takes too long"}
	case !matches:
		return Scope{Excluded: "no changed path matches " + text.JoinFirst(q.Paths, " or ")}
	}
	return s
}
