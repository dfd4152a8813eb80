package lint

import (
	"fmt"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// people adds findings about who may do too much, or counts too often.
func (l *linter) people() {
	isOpen := false // whether it depends on the identities alone who counts
	for i := range l.Requirements {
		r := &l.Requirements[i]
		isOpen = isOpen || r.State >= ledger.Promotable && len(r.Signers) == 0 && !r.Passkey && !l.found(FindingAnySigner, i)
	}
	l.oneForAll()

	var unlimited []string
	for _, s := range l.facts.Signers {
		if !s.IsRoot && (len(s.May) == 0 || slices.Contains(s.May, "*")) {
			unlimited = append(unlimited, s.DN.String())
		}
	}
	if isOpen && len(unlimited) > 0 && !l.facts.Missing {
		l.add(FindingMayEverything, "requirements", "limit what they may attest: ledgerd identity update --may",
			"%s may attest every predicate, reviews and deployments too", text.JoinFirst(unlimited, " and "))
	}
	for _, s := range l.facts.SameNames {
		l.add(FindingSameName, "requirements", "if they are one person, for each: ledgerd identity update --distinct=false; "+
			"if not: --distinct",
			"%s have the name %s, and count as %d people since an upgrade", text.JoinFirst(s.DNs, " and "),
			text.Quote(s.Name), len(s.DNs))
	}
}

// found reports whether there is a finding about who signs for a requirement.
func (l *linter) found(code FindingCode, i int) bool {
	at := fmt.Sprintf("requirements[%d].signers", i)
	return slices.ContainsFunc(l.review.Findings, func(f Finding) bool { return f.Code == code && f.Field == at })
}

// oneForAll adds a finding if somebody can sign for all requirements of ATTESTED and PROMOTABLE. It
// leaves out those that do not apply to all commits.
func (l *linter) oneForAll() {
	if l.signers == nil || !l.requires(ledger.Attested) || !l.requires(ledger.Promotable) {
		return
	}

	all := newPeopleSet(len(l.facts.Signers))
	for i := range l.facts.Signers {
		all.add(i)
	}
	for i := range l.Requirements {
		r := &l.Requirements[i]
		switch {
		case r.State == ledger.Deployed, len(r.Paths)+len(r.Branches) > 0:
		case r.Threshold > 1, r.Passkey, l.isApart(r), l.found(FindingAnySigner, i):
			return
		default:
			all.keep(l.signers.needs[i].people)
		}
	}

	if n := all.count(); n > 0 {
		l.add(FindingOneForAll, "requirements",
			`add "distinct_from": ["ATTESTED"] to the review, or limit what identities may attest`,
			"%s can sign for all requirements of ATTESTED and PROMOTABLE alone, tests and reviews", peopleText(n))
	}
}
