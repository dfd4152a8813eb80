package radar

import "slices"

// A Tip is a commit with the data that relates it to other commits.
type Tip struct {
	SHA    string // empty if not known yet
	Branch string
	// Base is the merge base with the mainline.
	Base    string
	Parents []string
	// Ancestors are the commits after Base up to this one.
	Ancestors []string
}

// Related reports whether two commits are never compared: they are the same commit, they
// belong to the same branch, or one is a known ancestor of the other.
func Related(a, b Tip) bool {
	return a.SHA != "" && a.SHA == b.SHA || a.Branch != "" && a.Branch == b.Branch ||
		a.HasAncestor(b.SHA) || b.HasAncestor(a.SHA)
}

// HasAncestor reports whether sha is a known ancestor of the commit.
func (t Tip) HasAncestor(sha string) bool {
	return sha != "" && (t.Base == sha || slices.Contains(t.Parents, sha) || slices.Contains(t.Ancestors, sha))
}

// SharesUnmerged reports whether two commits have known common ancestors that are not in
// the mainline. A base is in the mainline, so it does not count if it is listed as an
// ancestor.
func SharesUnmerged(a, b Tip) bool {
	if len(a.Ancestors) == 0 || len(b.Ancestors) == 0 {
		return false
	}
	unmerged := make(map[string]bool, len(a.Ancestors))
	for _, sha := range a.Ancestors {
		unmerged[sha] = sha != a.Base && sha != b.Base
	}
	return slices.ContainsFunc(b.Ancestors, func(sha string) bool { return unmerged[sha] })
}
