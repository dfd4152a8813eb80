package policy

import "slices"

// NeedsVerdicts reports whether any requirement has an expression. If so, Derive needs
// Facts.Verdicts.
func (c Contract) NeedsVerdicts() bool {
	for i := range c.Requirements {
		if c.Requirements[i].Where != "" {
			return true
		}
	}
	return false
}

// Expressions returns the different expressions of the requirements that are about the
// predicate of e, or its type, with any signer. Derive needs a verdict of each on e.
func (c Contract) Expressions(e *Evidence) []string {
	var list []string
	for i := range c.Requirements {
		r := &c.Requirements[i]
		if r.Where != "" && r.isAbout(e) && !slices.Contains(list, r.Where) {
			list = append(list, r.Where)
		}
	}
	return list
}
