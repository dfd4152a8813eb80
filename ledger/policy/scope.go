package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/internal/glob"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// scopes returns the scope of each requirement. It is nil if all apply to every commit.
func (c *Contract) scopes(f *Facts) []scope {
	if !c.hasGlobs() {
		return nil
	}
	if f.Memo == nil || c.isMatchedFast(f) {
		return c.matchScopes(f)
	}
	return c.memorizedScopes(f).list
}

// memorizedScopes returns the scopes from the memo. If they are not there, it adds them.
func (c *Contract) memorizedScopes(f *Facts) Scopes {
	key := f.scopeKey()
	known, ok := f.Memo.Scopes(key)
	if !ok {
		known = Scopes{c.matchScopes(f)}
		if !f.ChangesUnread {
			f.Memo.SetScopes(key, known)
		}
	}
	return known
}

// KnowsScopes reports whether the memo knows which requirements apply to a commit.
func (c *Contract) KnowsScopes(f *Facts) bool {
	if f.Memo == nil {
		return false
	}
	_, ok := f.Memo.Scopes(f.scopeKey())
	return ok
}

func (c *Contract) hasGlobs() bool {
	for i := range c.Requirements {
		if len(c.Requirements[i].Paths)+len(c.Requirements[i].Branches) > 0 {
			return true
		}
	}
	return false
}

// matchScopes matches the globs of all requirements. Each glob may take an equal part of
// the steps, so that the result does not depend on the order of requirements.
func (c *Contract) matchScopes(f *Facts) []scope {
	globs := 0
	for i := range c.Requirements {
		globs += len(c.Requirements[i].Paths) + len(c.Requirements[i].Branches)
	}
	list := make([]scope, len(c.Requirements))
	for i := range c.Requirements {
		list[i] = c.Requirements[i].scope(f, glob.MaxMatching/max(globs, 1))
	}
	return list
}

// maxUnprepared limits the steps of matching globs while others wait.
const maxUnprepared = 200_000

// isMatchedFast reports whether matching the globs of all requirements takes few steps.
func (c *Contract) isMatchedFast(f *Facts) bool {
	if f.ChangesUnread {
		return false
	}
	steps := 0
	for i := range c.Requirements {
		r := &c.Requirements[i]
		steps += glob.MaxCost(r.Branches, f.Targets)
		if f.HasChanges && len(f.Changes) <= glob.MaxMatched {
			steps += glob.MaxCost(r.Paths, f.Changes)
		}
		if steps > maxUnprepared {
			return false
		}
	}
	return true
}

// scopeKey identifies all that scopes depend on, apart from the contract.
func (f *Facts) scopeKey() [sha256.Size]byte {
	changes := f.ChangesKey
	if changes == "" && f.HasChanges {
		changes = ChangesKey(f.Changes)
	}
	text := fmt.Appendf(nil, "%t %d %q", f.HasChanges, len(f.Targets), changes)
	for _, name := range f.Targets {
		text = append(append(text, 0), name...)
	}
	return sha256.Sum256(text)
}

// ChangesKey returns a key for Facts.ChangesKey: lists of paths with equal keys have the
// same scopes under every contract.
func ChangesKey(paths []string) string {
	if len(paths) > glob.MaxMatched {
		return "many"
	}
	h := sha256.New()
	for _, path := range paths {
		h.Write(append([]byte(path), 0)) // never fails
	}
	return hex.EncodeToString(h.Sum(nil))
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

	if f.ChangesUnread {
		return scope{unsure: "the changed paths were not read"}
	}
	if len(f.Changes) > glob.MaxMatched {
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
