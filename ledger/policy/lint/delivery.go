package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// delivery adds findings about commits that a deployment ships although they lack evidence about their changes.
func (l *linter) delivery() {
	ofChange := func(r policy.Requirement) bool { return r.State < ledger.Deployed && r.Covers == policy.CoversChange }
	change := slices.IndexFunc(l.Requirements, ofChange)
	hasDelivery := slices.ContainsFunc(l.Requirements, func(r policy.Requirement) bool { return r.Delivery })

	for i := range l.Requirements {
		r := &l.Requirements[i]
		switch {
		case change >= 0 && r.State == ledger.Deployed && l.isUnchecked(r):
			l.add(FindingDeliveryUnchecked, fmt.Sprintf("requirements[%d].delivery", i),
				"add delivery: true; if nothing was deployed yet, say what runs: ledgerd environment baseline",
				"%s: a deployment can ship earlier commits that do not meet requirements[%d] (%s), which covers changes",
				r.Subject(), change, l.Requirements[change].Subject())
		case hasDelivery && r.State < ledger.Deployed && r.Covers == policy.CoversTree &&
			strings.HasPrefix(l.facts.predicatesOf(r), ledger.ReviewPrefix):
			l.add(FindingReviewCoversTree, fmt.Sprintf("requirements[%d].covers", i), "add covers: change",
				"%s: only the deployed commit needs this review, so a deployment can ship earlier commits without it",
				r.Subject())
		}
	}
}

// isUnchecked reports whether a requirement is about deployments, and none asks for all that they ship.
func (l *linter) isUnchecked(r *policy.Requirement) bool {
	checks := func(other policy.Requirement) bool {
		return other.Delivery && patternCovers(other.Subject(), r.Subject())
	}
	return strings.HasPrefix(r.Subject(), ledger.EnvironmentPredicate("")) && !slices.ContainsFunc(l.Requirements, checks)
}

// paths adds a finding if anyone who registers a commit decides which requirements apply, by the paths that it claims.
func (l *linter) paths() {
	var fields []string
	for i := range l.Requirements {
		if len(l.Requirements[i].Paths) > 0 {
			fields = append(fields, fmt.Sprintf("requirements[%d]", i))
		}
	}
	if l.SignsChanges() || len(fields) == 0 {
		return
	}
	l.add(FindingUnsignedPaths, fields[0]+".paths",
		"let the mainline's job sign changes:* (ledgerd commit register --key), and apply the policy again",
		"anybody with a write token can keep %s from applying: by the rules of an earlier release, registrations say "+
			"which paths a commit changes", text.JoinFirst(fields, " and "))
}
