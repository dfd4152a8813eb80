package policy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
)

// environments adds a finding if a requirement for DEPLOYED also counts deployments to
// other environments: those that a lower state asks for, or several that were signed.
func (l *linter) environments(i int, at string) {
	r := &l.Requirements[i]
	subject := r.subject()
	if r.State != ledger.Deployed || IsTypePattern(subject) {
		return
	}
	const fix = "name the predicate of production, such as deploy:prod"
	for j := range l.Requirements {
		lower := &l.Requirements[j]
		if lower.State < r.State && !IsTypePattern(lower.subject()) && patternsOverlap(subject, lower.subject()) {
			l.add(FindingMixedEnvironments, at+"."+r.subjectField(), fix,
				"%s: also matches %s, which requirements[%d] asks for before the deployment", subject, lower.subject(), j)
			return
		}
	}

	names := l.facts.Signed[subject]
	if len(names) < 2 || !slices.ContainsFunc(names, func(name string) bool { return !isProduction(name) }) {
		return
	}
	l.add(FindingMixedEnvironments, at+"."+r.subjectField(), fix,
		"%s: each of %s makes a commit DEPLOYED", subject, joinFirst(names, " and "))
}

// isProduction reports whether the name of a predicate is that of a production
// environment, such as deploy:prod-eu.
func isProduction(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool { return w == "prod" || w == "production" || w == "live" })
}
