package radar

import "slices"

// A Tip is what tells how a commit stands to others.
type Tip struct {
	SHA    string // empty where it is not known yet
	Branch string
	// Base is the merge base with the mainline.
	Base    string
	Parents []string
	// Ancestors are the commits from Base to this one.
	Ancestors []string
}

// Related reports whether two commits are never compared: they are one, of one
// branch, or one is built on the other, as far as that is known.
func Related(a, b Tip) bool {
	return a.SHA != "" && a.SHA == b.SHA || a.Branch != "" && a.Branch == b.Branch || a.BuiltOn(b.SHA) || b.BuiltOn(a.SHA)
}

// BuiltOn reports whether the commit is known to have that ancestor.
func (t Tip) BuiltOn(sha string) bool {
	return sha != "" && (t.Base == sha || slices.Contains(t.Parents, sha) || slices.Contains(t.Ancestors, sha))
}

// SharesUnmerged reports whether two commits have ancestors in common that are
// not in the mainline, as far as that is known. A base is in the mainline, and
// does not count where it is listed.
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
