// Package lint reviews contracts: it finds parts that are probably mistakes. FindingCode lists their kinds.
package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/linking"
	"github.com/ledgerd/ledgerd/ledger/policy/size"
)

// Check looks for parts of a contract that are probably mistakes: those that let anybody
// through, and those that nobody can meet. It says nothing about what it does not know,
// such as the people whose certificates a root signs.
func Check(c policy.Contract, f Facts) Review {
	l := &linter{Contract: c, facts: f, review: Review{Findings: []Finding{}}}
	if len(f.Signers) > 0 {
		l.signers, l.review.Unchecked = newSigners(c, &f)
	} else {
		l.add(FindingNoIdentities, "requirements", "add the keys of CI and of reviewers: ledgerd identity add",
			"the org trusts no identity, so nothing can be signed")
	}
	if !l.requires(ledger.Attested) && !l.requires(ledger.Promotable) {
		l.add(FindingNoRequirements, "requirements", "require evidence for ATTESTED or PROMOTABLE, such as test:*",
			"any attestation makes a commit PROMOTABLE: there is no requirement for ATTESTED or PROMOTABLE")
	}
	if !l.requires(ledger.Deployed) {
		l.add(FindingNoDeployment, "requirements", "add a requirement for DEPLOYED, such as deploy:prod",
			"no commit becomes DEPLOYED: there is no requirement for it")
	}

	l.size()
	for i := range c.Requirements {
		l.requirement(i, fmt.Sprintf("requirements[%d]", i))
	}

	l.people()
	l.targets()
	l.paths()
	l.delivery()
	if l.signers != nil && len(c.Exceptions.Signers) > 0 && l.signers.exceptions.isNobodys() {
		l.add(FindingNobodyMatches, "exceptions.signers", "name signers that the org trusts, and let them attest exception:*",
			"nobody can grant an exception: no trusted identity matches")
	}
	if l.signers != nil && len(c.Artifacts.Signers) > 0 && l.signers.artifacts.isNobodys() {
		l.add(FindingNobodyMatches, "artifacts.signers", "name signers that the org trusts",
			"nobody links artifacts: no trusted identity matches")
	}
	l.linkers()
	return l.review
}

// size adds a finding for each limit of new contracts that the contract passes.
func (l *linter) size() {
	for _, f := range size.Excess(&l.Contract, size.Size{}) {
		l.add(FindingTooLarge, f.Field, "remove or merge requirements and patterns", "%s", f.Message)
	}
}

// linkers adds findings about who links artifacts: everybody, or nobody.
func (l *linter) linkers() {
	isBuilder := func(s Signer) bool { return slices.ContainsFunc(s.May, linking.IsBuild) }
	named := l.Artifacts.Signers
	switch {
	case linking.AnyLinker(&l.Contract):
		l.add(FindingAnyLinker, "artifacts", "name the builders in artifacts.signers or by identity update --may "+
			"build:…, and "+
			"apply the policy again", "any identity without a list of predicates can link any image to any commit, by the "+
			"rules of an earlier release")
	case slices.ContainsFunc(named, identity.Pattern.MatchesAll),
		len(named) > 0 && l.signers != nil && l.signers.artifacts.everybody:
		l.add(FindingAnyLinker, "artifacts.signers", "name the builders, such as ou=build",
			"every trusted identity can link any image to any commit, by any statement")
	case len(named) > 0 || !l.facts.HasArtifacts || l.facts.Missing:
	case !slices.ContainsFunc(l.facts.Signers, isBuilder):
		l.add(FindingNobodyLinks, "artifacts", "name the builders in artifacts.signers or by identity update --may build:…",
			"nobody links artifacts, so no image reaches a state: no trusted identity has a build: pattern in its list")
	}
}

func (l *linter) requirement(i int, at string) {
	l.openness(i, at)
	if !l.unmeetable(i, at) && !l.neverConfirmed(i, at) && !l.neverCounts(i, at) {
		l.neverSigned(i, at)
	}
	l.environments(i, at)
	l.carry(i, at)
	l.authors(i, at)
}

// authors adds findings about who is left out because they wrote the commit.
func (l *linter) authors(i int, at string) {
	r := &l.Requirements[i]
	if r.ExcludeAuthor == policy.AuthorExcluded && l.facts.AllProven {
		l.add(FindingAuthorClaimed, at+".exclude_author", "set it to \"proven\"", "%s: until the commit object is known, "+
			"registrations say who the author is; the newest commits of the repo all came with their objects", r.Subject())
	}
	if r.ExcludeAuthor == policy.AuthorCounts || l.facts.UnknownAuthors == 0 {
		return
	}
	what := "an author who signs by another name counts"
	if r.ExcludeAuthor == policy.KnownAuthorExcluded {
		what = "no signature counts for these"
	}
	l.add(FindingAuthorUnknown, at+".exclude_author",
		"give the authors' addresses and logins to their identities: ledgerd identity update",
		"%s: %d of the newest %d commits are by somebody whom the org does not know, so %s", r.Subject(),
		l.facts.UnknownAuthors, l.facts.NewestCommits, what)
}

// openness adds a finding if every trusted identity satisfies the requirement. Keys do not if
// it has passkey.
func (l *linter) openness(i int, at string) {
	r := &l.Requirements[i]
	if len(r.Signers) > 0 || r.Passkey || l.review.Unchecked != "" || l.signers != nil && !l.signers.needs[i].allMay {
		return
	}
	if tool := l.tool(r); tool != "" {
		l.add(FindingToolWithoutSigner, at+".signers", "name the signers that run it, such as ou=build,o=acme",
			"%s: any trusted identity can claim to be this %s", r.Subject(), tool)
		return
	}

	if r.Threshold > 1 || l.isApart(r) {
		return
	}
	const fix = "name the signers, add distinct_from, or limit what identities may attest"
	switch {
	case r.State >= ledger.Promotable:
		l.add(FindingAnySigner, at+".signers", fix, "%s: any trusted identity satisfies it, CI's key too", r.Subject())
	case !l.requires(ledger.Promotable):
		l.add(FindingAnySigner, at+".signers", fix, "%s: any trusted identity satisfies it, and nothing else is required "+
			"for PROMOTABLE", r.Subject())
	}
}

// tool returns the kind of tool whose result the requirement asks for, or "" for none.
func (l *linter) tool(r *policy.Requirement) string {
	subject := l.facts.predicatesOf(r)
	for _, tool := range []struct{ prefix, name string }{
		{"vsa:", "verifier"}, {"svr:", "verifier"}, {"scan:", "scanner"}, {"sbom:", "generator"},
	} {
		if strings.HasPrefix(subject, tool.prefix) {
			return tool.name
		}
	}
	return ""
}

// unmeetable adds a finding if there are not enough people for the requirement. It reports
// whether there is nobody.
func (l *linter) unmeetable(i int, at string) bool {
	if l.signers == nil || l.signers.needs[i].unknown {
		return false
	}
	r, n := &l.Requirements[i], &l.signers.needs[i]
	switch people := n.people.count(); {
	case people == 0 && n.anyMay:
		l.add(FindingNobodyMatches, at+".signers", "name signers that the org trusts: ledgerd identity list",
			"%s: nobody can meet it: no trusted identity that may attest it matches %s", r.Subject(), signerTexts(r))
		return true
	case people == 0:
		l.add(FindingNobodyMatches, at+"."+subjectField(r), "let an identity attest it: ledgerd identity update --may",
			"%s: nobody can meet it: no trusted identity may attest it", r.Subject())
		return true
	case people < r.Threshold:
		l.add(FindingThresholdTooHigh, at+".threshold", "lower the threshold, or trust more people",
			"%s: needs %s, but only %s can sign it", r.Subject(), peopleText(r.Threshold), peopleText(people))
		return false
	}

	if j := l.tooFewApart(i); j >= 0 {
		l.add(FindingTooFewPeople, at+".distinct_from", "trust more people, or let them attest it",
			"%s: needs %s besides %d for requirements[%d] (%s), but not enough people can sign them", r.Subject(),
			peopleText(r.Threshold), l.Requirements[j].Threshold, j, l.Requirements[j].Subject())
	}
	return false
}

// tooFewApart returns a requirement from which requirement i is distinct, but without
// enough people for both, or -1. It leaves out those that do not apply to all commits, and
// those that cannot be met themselves.
func (l *linter) tooFewApart(i int) int {
	r, own := &l.Requirements[i], l.signers.needs[i].people
	for j := range l.Requirements {
		other, need := &l.Requirements[j], &l.signers.needs[j]
		if !slices.Contains(r.DistinctFrom, other.State) || need.unknown || len(other.Paths)+len(other.Branches) > 0 {
			continue
		}
		spare := need.people.count() - other.Threshold
		common := own.common(need.people)
		if spare >= 0 && own.count()-common+min(common, spare) < r.Threshold {
			return j
		}
	}
	return -1
}

// neverConfirmed adds a finding, and reports true, if a passkey must confirm the evidence, but none
// can. Passkeys confirm only reviews on the page of a commit. Members sign these with certificates
// of a root.
func (l *linter) neverConfirmed(i int, at string) bool {
	r := &l.Requirements[i]
	switch {
	case !r.Passkey:
		return false
	case !patternsOverlap(l.facts.predicatesOf(r), reviewPredicates):
		l.add(FindingNeverConfirmed, at+".passkey", "remove passkey from the requirement",
			"%s: nobody can meet it: passkeys confirm only reviews (review:*)", r.Subject())
		return true
	case l.signers != nil && !l.signers.needs[i].unknown:
		l.add(FindingNeverConfirmed, at+".passkey", "create a CA for people, or name signers that it certifies",
			"%s: nobody can meet it: passkeys confirm only reviews by members, and no CA certifies a signer who counts",
			r.Subject())
		return true
	}
	return false
}

// neverCounts adds a finding, and reports true, if evidence that matches the requirement
// never has a status that it accepts.
func (l *linter) neverCounts(i int, at string) bool {
	r := &l.Requirements[i]
	acceptsRecorded := slices.Contains(r.Accept, ledger.Recorded)
	subject := r.Subject()
	if !policy.IsTypePattern(subject) {
		onlyRecorded := acceptsRecorded && len(r.Accept) == 1
		matches := func(p string) bool { return patternsOverlap(p, subject) }
		if onlyRecorded && !slices.ContainsFunc(l.facts.RecordedPredicates, matches) {
			l.add(FindingNeverCounts, at+".accept", "accept pass",
				"%s: its statements have an outcome, so they are never recorded without one", subject)
			return true
		}
		return false
	}

	types := l.facts.Signed[subject]
	if !strings.HasSuffix(subject, "*") {
		types = []string{subject}
	}
	if acceptsRecorded || len(types) == 0 ||
		slices.ContainsFunc(types, func(uri string) bool { return l.facts.typeOf(uri).Outcome }) {
		return false
	}
	l.add(FindingNeverCounts, at+".accept", "accept recorded",
		"%s: statements of this type have no outcome, so none has the status %s", subject, statusesText(r.Accept))
	return true
}

// neverSigned adds a finding if nobody has signed the predicate of the requirement, and
// others were signed.
func (l *linter) neverSigned(i int, at string) {
	r := &l.Requirements[i]
	if !l.facts.AnySigned || len(l.facts.Signed[r.Subject()]) > 0 {
		return
	}
	l.add(FindingNeverSigned, at+"."+subjectField(r), "check the name: ledgerd predicate list",
		"%s: nobody has ever signed it in this org", r.Subject())
}

// carry adds a finding if nobody can claim the merges by which evidence carries, or if no
// evidence for the requirement carries at all.
func (l *linter) carry(i int, at string) {
	r := &l.Requirements[i]
	if r.Carry == 0 {
		return
	}
	if why := l.neverCarries(r); why != "" {
		l.add(FindingNeverCarries, at+".carry", "remove carry from the requirement", "%s: carry has no effect: %s",
			r.Subject(), why)
		return
	}
	l.claimsByTests(r, at)
	if l.signers == nil || l.signers.claims[i] == nil || !l.signers.claims[i].isNobodys() {
		return
	}
	l.add(FindingNobodyMatches, at+".carry_signers",
		"name signers that the org trusts, such as that of the merge queue, and let them attest merge:*",
		"%s: no merge is claimed by anybody who counts: no trusted identity that may attest merge:* matches carry_signers",
		r.Subject())
}

// claimsByTests adds a finding if a key that claims merges may also sign what carries by them: a job that runs the code
// of a branch could claim that an evil merge of it is clean.
func (l *linter) claimsByTests(r *policy.Requirement, at string) {
	subject := l.facts.predicatesOf(r)
	var names []string
	for _, s := range l.facts.Signers {
		signs := func(p string) bool { return patternsOverlap(p, subject) }
		if slices.ContainsFunc(s.May, namesMerges) && slices.ContainsFunc(s.May, signs) {
			names = append(names, s.name())
		}
	}
	if len(names) > 0 {
		l.add(FindingClaimsByTests, at+".carry", "give claims a key of their own, with --may 'merge:*,changes:*'",
			"%s: %s may claim merges and sign what carries by them", r.Subject(), text.JoinFirst(names, " and "))
	}
}

// neverCarries returns why no evidence for a requirement carries, or "".
func (l *linter) neverCarries(r *policy.Requirement) string {
	if policy.IsTypePattern(r.Subject()) {
		return ""
	}
	if prefix := ledger.ReservedPrefix(r.Subject()); prefix != "" {
		return prefix + "* is about one commit only"
	}
	for i := range l.Requirements {
		other := &l.Requirements[i]
		if other.State == ledger.Deployed && !policy.IsTypePattern(other.Subject()) &&
			patternCovers(other.Subject(), r.Subject()) {
			return fmt.Sprintf("requirements[%d] makes it a deployment, and deployments do not carry", i)
		}
	}
	return ""
}

// targets adds a finding if anyone who registers a commit decides which requirements apply.
func (l *linter) targets() {
	byBranch := func(r policy.Requirement) bool { return len(r.Branches) > 0 }
	if i := slices.IndexFunc(l.Requirements, byBranch); l.Targets == policy.ClaimedTargets && i >= 0 {
		l.add(FindingClaimedTargets, "targets", "use targets: all, unless releases come from branches alone",
			"anybody with a write token can keep requirements[%d] from applying: by registering the commit for another "+
				"branch", i)
	}
}

// signerTexts lists the first patterns of signers.
func signerTexts(r *policy.Requirement) string {
	var texts []string
	for _, p := range r.Signers {
		texts = append(texts, p.String())
	}
	return text.JoinFirst(texts, " or ")
}

func statusesText(statuses []ledger.Status) string {
	var names []string
	for _, s := range statuses {
		names = append(names, string(s))
	}
	return strings.Join(names, " or ")
}

// environments adds a finding if a requirement for DEPLOYED also counts deployments to
// other environments: those that a lower state asks for, or several that were signed.
func (l *linter) environments(i int, at string) {
	r := &l.Requirements[i]
	subject := r.Subject()
	if r.State != ledger.Deployed || policy.IsTypePattern(subject) {
		return
	}
	const fix = "name the predicate of production, such as deploy:prod"
	for j := range l.Requirements {
		lower := &l.Requirements[j]
		if lower.State < r.State && !policy.IsTypePattern(lower.Subject()) && patternsOverlap(subject, lower.Subject()) {
			l.add(FindingMixedEnvironments, at+"."+subjectField(r), fix,
				"%s: also matches %s, which requirements[%d] asks for before the deployment", subject, lower.Subject(), j)
			return
		}
	}

	names := l.facts.Signed[subject]
	if len(names) < 2 || !slices.ContainsFunc(names, func(name string) bool { return !isProduction(name) }) {
		return
	}
	l.add(FindingMixedEnvironments, at+"."+subjectField(r), fix,
		"%s: each of %s makes a commit DEPLOYED", subject, text.JoinFirst(names, " and "))
}

// isProduction reports whether the name of a predicate is that of a production
// environment, such as deploy:prod-eu.
func isProduction(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) })
	return slices.ContainsFunc(words, func(w string) bool { return w == "prod" || w == "production" || w == "live" })
}
