package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/assign"
)

// status explains the decision about a requirement.
func (v *evaluation) status(i int) ledger.RequirementStatus {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	s := ledger.RequirementStatus{Name: r.Name, State: r.State, Predicate: cmp.Or(r.Predicate, r.Type), Need: r.Threshold,
		Applies: d.applies, Met: d.met}
	if !d.applies {
		s.Reason = "does not apply: " + d.Excluded
		return s
	}

	s.SignersCounted = v.signersCounted(d)
	s.Have = d.have + d.filled
	if x := d.exception; x != nil {
		s.Exception = &ledger.ExceptionStatus{Attestation: x.Attestation, Identity: x.Signer.String(), Reason: x.Reason,
			Until: x.Until}
	}
	for at, verdict := range d.verdicts {
		if verdict == blocks {
			name := v.name(at)
			if n := len(s.FailedBy); n == 0 || s.FailedBy[n-1] != name {
				s.FailedBy = append(s.FailedBy, name)
			}
		}
	}
	for _, shut := range v.shutting(i) {
		s.RolledBack = append(s.RolledBack, shut.record())
	}
	slices.Sort(s.FailedBy)
	s.FailedBy = slices.Compact(s.FailedBy)
	s.Carried = v.carried(i)

	s.Reason = v.reason(i, &s)
	if d.Unsure != "" && !s.Met {
		s.Reason += "; applies because " + d.Unsure
	}
	return s
}

// signersCounted returns the names of those who count, sorted. Of several names of an
// individual, it is the first one.
func (v *evaluation) signersCounted(d *decision) []string {
	var names []string
	first := make(map[int]int, d.have) // by individual, the index in names
	for at, verdict := range d.verdicts {
		if verdict != counts {
			continue
		}
		name := v.name(at)
		n, ok := first[v.individuals[at]]
		switch {
		case !ok:
			first[v.individuals[at]] = len(names)
			names = append(names, name)
		case name < names[n]:
			names[n] = name
		}
	}
	slices.Sort(names)
	return names
}

// reason returns why a requirement is met, or what is missing.
func (v *evaluation) reason(i int, s *ledger.RequirementStatus) string {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	if s.Met {
		return "met by " + text.JoinFirst(counting(d, s.SignersCounted), " and ") + carriedFrom(s.Carried) +
			v.strangerReason(r, d)
	}
	if d.blocked && d.exception == nil {
		return v.blockers(i, s)
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d signatures", s.Predicate, s.Have, r.Threshold)
	if r.Passkey {
		b.WriteString(" confirmed by a passkey")
	}
	if len(r.Signers) > 0 {
		var patterns []string
		for _, p := range r.Signers {
			patterns = append(patterns, p.String())
		}
		b.WriteString(" matching " + text.JoinFirst(patterns, " or "))
	}
	if s.Have > 0 {
		b.WriteString(" (" + text.JoinFirst(counting(d, s.SignersCounted), " and ") + carriedFrom(s.Carried) + ")")
	}
	if v.isIncomplete(r) {
		b.WriteString("; " + v.f.Incomplete)
	}
	if r.Carry != 0 && v.f.NotCarried != "" {
		b.WriteString("; " + v.f.NotCarried)
	}

	for _, note := range notes {
		if list := v.reports(d, note.verdict); list != "" {
			b.WriteString("; " + note.about(r) + ": " + list)
		}
	}
	if list := v.whereErrors(r, d); list != "" {
		b.WriteString("; where cannot be evaluated: " + list)
	}
	b.WriteString(v.authorReason(r, d))
	b.WriteString(v.strangerReason(r, d))
	b.WriteString(v.treeReason(r))
	b.WriteString(v.claimReason(r))
	if d.exception != nil && d.filled == 0 {
		b.WriteString("; the exception needs " + neededDeployment(r))
	}
	b.WriteString(v.distinctReason(i, s))
	return b.String()
}

// neededDeployment says what an exception for a DEPLOYED requirement needs.
func neededDeployment(r *Requirement) string {
	if r.Delivery {
		return "a deployment of a PROMOTABLE commit that ships only what is covered"
	}
	return "somebody to have deployed the commit"
}

// authorReason says why evidence does not count because it is not known who wrote a commit.
// It is empty if that is not so.
func (v *evaluation) authorReason(r *Requirement, d *decision) string {
	const how = " (to register it, run ledgerd commit register, or ledgerd attest in a work tree)"
	list := v.f.authorships()
	own := list[0]
	switch rule := r.ExcludeAuthor; {
	case rule == AuthorCounts:
		return ""
	case !own.HasName() && own.Proven:
		return "; the commit's author is unknown: its object names none"
	case !own.HasName():
		return "; the commit's author is unknown" + how
	case rule >= ProvenAuthorExcluded && !own.Proven:
		return "; the commit's author is not proven: its object is unknown" + how
	}

	unknown := ""
	for at, verdict := range d.verdicts {
		n := v.f.Evidence[at].Source
		if verdict != byAnyone || n == 0 ||
			satisfied(&list[n], r.ExcludeAuthor) >= min(r.ExcludeAuthor, ProvenAuthorExcluded) {
			continue
		}
		if name := ledger.Short(v.f.Sources[n-1].Commit); unknown == "" || name < unknown {
			unknown = name
		}
	}
	if unknown == "" {
		return ""
	}
	return "; it is unknown who wrote " + unknown + how
}

// strangerReason names those who wrote the commit, or another one whose evidence may count, and
// whom the org does not know: one of them may have signed it by another name. It is empty if
// there are none.
func (v *evaluation) strangerReason(r *Requirement, d *decision) string {
	if r.ExcludeAuthor == AuthorCounts {
		return ""
	}
	list := v.f.authorships()
	concerns := make([]bool, len(list))
	concerns[0] = true
	for at, verdict := range d.verdicts {
		if verdict == counts || verdict == byAnyone {
			concerns[v.f.Evidence[at].Source] = true
		}
	}

	var names, keys []string
	for n := range list {
		if !concerns[n] || !list[n].HasName() {
			continue
		}
		for _, a := range list[n].Strangers() {
			names = append(names, quoted(a))
		}
		if r.ExcludeAuthor == KnownAuthorExcluded {
			keys = append(keys, list[n].StrangeKeys()...)
		}
	}
	reason := ""
	if names != nil {
		slices.Sort(names)
		reason = "; the org knows nobody of this name: " + text.JoinFirst(slices.Compact(names), ", ") +
			" (if it is a signer's, add it: ledgerd identity update, or identity add of a key with the signer's DN)"
	}
	if keys != nil {
		slices.Sort(keys)
		reason += "; the org does not know the key that signed the commit: " + text.JoinFirst(slices.Compact(keys), ", ")
	}
	return reason
}

// quoted returns the name and the address of an author, as far as there are any.
func quoted(a ledger.Author) string {
	switch {
	case a == ledger.Author{}:
		return "(no name)"
	case a.Email == "":
		return text.Quote(a.Name)
	}
	return text.Quote(strings.TrimSpace(a.Name + " <" + a.Email + ">"))
}

// treeReason names the commits with the same tree whose evidence does not carry to a requirement because of its base.
// It is empty if all of it carries.
func (v *evaluation) treeReason(r *Requirement) string {
	v.carrying.findWays(r)
	var list []string
	for at := v.carrying.own; at < len(v.f.Evidence); at++ {
		e := &v.f.Evidence[at]
		if e.Source != 0 && v.carrying.trees[e.Source-1] && r.isAbout(e) && !v.carrying.carriesByTree(r, e) {
			list = append(list, ledger.Short(v.f.Sources[e.Source-1].Commit))
		}
	}
	if list == nil {
		return ""
	}
	slices.Sort(list)
	return "; nothing carries from " + text.JoinFirst(slices.Compact(list), " or from ") +
		" (the same tree), which was reviewed without a base, or from one that not all parents of this commit are known " +
		"to contain"
}

// claimReason says why evidence of merged commits does not carry to a requirement, although
// somebody claims the merges. It is empty if that is not so.
func (v *evaluation) claimReason(r *Requirement) string {
	if r.Carry&CarryMerge == 0 {
		return ""
	}
	var list []string
	for i := range v.f.Sources {
		s := &v.f.Sources[i]
		if why := v.refusals(r, s); why != "" && (!s.SameTree || r.Carry&CarryTree == 0) {
			list = append(list, ledger.Short(s.Commit)+", because "+why)
		}
	}
	if list == nil {
		return ""
	}
	slices.Sort(list)
	return "; nothing carries from " + text.JoinFirst(list, " or from ")
}

// refusals says why no claim about a source counts for a requirement. It gives the
// reason of a claim by carry_signers, or else names the signers of the others. It is empty if a claim counts, and
// without claims.
func (v *evaluation) refusals(r *Requirement, s *Source) string {
	var others []string
	by := ""
	for i := range s.Claims {
		m := &s.Claims[i]
		switch why := v.carrying.whyRefused(r, m); {
		case !matchesAny(r.CarrySigners, m.Signer):
			others = append(others, m.Signer.String())
		case why == "":
			return ""
		case by == "":
			by = why
		}
	}
	if by != "" || others == nil {
		return by
	}
	slices.Sort(others)
	return "carry_signers has no pattern for " + text.JoinFirst(others, " or ") + ", who claims the merge"
}

// NoteDistrusted adds the attestations that do not count, because their key was compromised,
// to the reasons of the requirements that they would be evidence for. The statuses are those
// that Derive returns.
func (c *Contract) NoteDistrusted(statuses []ledger.RequirementStatus, attestations []ledger.AttestationRecord) {
	for i := range statuses[:min(len(statuses), len(c.Requirements))] {
		if s := &statuses[i]; s.Applies && !s.Met {
			s.Reason += distrustReason(&c.Requirements[i], attestations)
		}
	}
}

// distrustReason lists the distrusted attestations that a requirement is about.
func distrustReason(r *Requirement, attestations []ledger.AttestationRecord) string {
	var list []string
	for i := range attestations {
		a := &attestations[i]
		if a.Distrusted && r.isAbout(&Evidence{Predicate: a.Predicate, PredicateType: a.PredicateType}) {
			list = append(list, fmt.Sprintf("%s %s (%s)", a.Predicate, statusVerbs[a.Result.Status], a.Identity))
		}
	}
	if list == nil {
		return ""
	}
	slices.Sort(list)
	return "; distrusted, because the key was compromised: " + text.JoinFirst(slices.Compact(list), " and ")
}

// A note explains the evidence that got a verdict.
type note struct {
	verdict verdict
	text    string
}

// about returns the text of the note for the evidence of a requirement.
func (n note) about(r *Requirement) string {
	if n.verdict == early && r.Delivery {
		return "recorded when the commit was not PROMOTABLE, or over a commit that is not covered"
	}
	return n.text
}

// notes explain the evidence that does not count.
var notes = []note{
	{notAccepted, "status not accepted"},
	{unconfirmed, "without a passkey"},
	{whereFalse, "where is false"},
	{notEvaluated, "where is not evaluated yet"},
	{expired, "expired"},
	{undone, "deployed before it was rolled back"},
	{early, "recorded before the commit was PROMOTABLE"},
	{otherSlot, "not for each artifact"},
	{byAuthor, "by the commit's author"},
}

// counting returns the signers who count and, if there is one, the exception that fills a
// place.
func counting(d *decision, signers []string) []string {
	if d.filled == 0 {
		return signers
	}
	return append(slices.Clone(signers), "an exception by "+d.exception.Signer.String())
}

// distinctReason says why enough signers are not enough, because they must differ from
// those of lower states. It is empty if that is not so.
func (v *evaluation) distinctReason(i int, s *ledger.RequirementStatus) string {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	if s.Have < s.Need || len(r.DistinctFrom) == 0 {
		return ""
	}
	var names []string
	for _, state := range r.DistinctFrom {
		names = append(names, state.String())
	}
	states := strings.Join(names, " and ")
	if d.distinct == assign.GaveUp {
		return tooManyWays + states
	}

	demand := v.demand(i)
	for more := 1; more <= demand; more++ {
		switch v.assign(i, demand-more) {
		case assign.GaveUp:
			return tooManyWays + states
		case assign.Found:
			return "; " + morePeople(more) + " not needed for " + states
		}
	}
	return "; it waits for enough distinct signers for " + states
}

const tooManyWays = "; there are too many ways to find people other than those needed for "

// morePeople says that so many people are needed. It ends before what they must not be.
func morePeople(n int) string {
	if n == 1 {
		return "1 more person is needed, who is"
	}
	return fmt.Sprintf("%d more people are needed, who are", n)
}

// reports lists the evidence that got verdict v: what was reported, and by whom.
func (v *evaluation) reports(d *decision, which verdict) string {
	var list []string
	for at, verdict := range d.verdicts {
		if verdict == which {
			list = append(list, v.report(at))
		}
	}
	slices.Sort(list)
	return text.JoinFirst(list, " and ")
}

// blockers lists what blocks a requirement: failures, and rollbacks.
func (v *evaluation) blockers(i int, s *ledger.RequirementStatus) string {
	var list []string
	if failures := v.reports(&v.decisions[i], blocks); failures != "" {
		list = append(list, failures)
	}
	for _, r := range s.RolledBack {
		list = append(list, r.String())
	}
	return strings.Join(list, " and ")
}

// name returns the name of the signer of the evidence at a position.
func (v *evaluation) name(at int) string {
	if v.names == nil {
		v.names = make([]string, len(v.f.Evidence))
	}
	if v.names[at] == "" {
		v.names[at] = v.f.Evidence[at].Signer.String()
	}
	return v.names[at]
}

// report says what the evidence at a position reports, and by whom.
func (v *evaluation) report(at int) string {
	if v.reported == nil {
		v.reported = make([]string, len(v.f.Evidence))
	}
	if v.reported[at] == "" {
		e := &v.f.Evidence[at]
		verb := statusVerbs[e.Status]
		if e.Distrusted {
			verb = "is distrusted, and what it replaced is still to be found"
		}
		v.reported[at] = e.Predicate + " " + verb + e.inSlot() + " (" + v.name(at) + ")"
		if e.Source != 0 {
			v.reported[at] += " on " + ledger.Short(v.f.Sources[e.Source-1].Commit)
		}
	}
	return v.reported[at]
}

// inSlot names the slot of e for a reason. It is empty if e has none.
func (e *Evidence) inSlot() string {
	if e.Slot == "" {
		return ""
	}
	return " for " + ledger.ShortSlot(e.Slot)
}

var statusVerbs = map[ledger.Status]string{
	ledger.Pass: "passed", ledger.Warn: "warned", ledger.Fail: "failed", ledger.Errored: "errored", ledger.Skip: "skipped",
	ledger.Recorded: "recorded",
}

// whereErrors lists why an expression could not be evaluated on the evidence.
func (v *evaluation) whereErrors(r *Requirement, d *decision) string {
	var list []string
	for at, verdict := range d.verdicts {
		if verdict == whereError {
			e := &v.f.Evidence[at]
			fault := v.f.Verdicts[r.Expression()][e.Attestation].Error
			list = append(list, text.Clip(fault)+" ("+e.Signer.String()+")")
		}
	}
	slices.Sort(list)
	return text.JoinFirst(slices.Compact(list), " and ")
}

// carried lists the evidence of other commits that counts for a requirement, or blocks it.
func (v *evaluation) carried(i int) (list []ledger.CarriedEvidence) {
	r, d := &v.c.Requirements[i], &v.decisions[i]
	for at := v.carrying.own; at < len(d.verdicts); at++ {
		if d.verdicts[at] != counts && d.verdicts[at] != blocks || v.isOfOther(at) {
			continue
		}
		if list == nil {
			v.carrying.findWays(r)
		}
		e := &v.f.Evidence[at]
		c := ledger.CarriedEvidence{Commit: v.f.Sources[e.Source-1].Commit, Attestation: e.Attestation,
			Predicate: e.Predicate, Identity: v.name(at), Status: e.Status, By: "tree"}
		if claim := v.authors.way(r, at).claim; claim != nil {
			c.By, c.Claim = "merge", claim.Attestation
		}
		if d.verdicts[at] == counts {
			c.Until = r.end(v.f, e)
		}
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b ledger.CarriedEvidence) int { return strings.Compare(a.Attestation, b.Attestation) })
	return list[:min(len(list), ledger.MaxCarried)]
}

// carriedFrom names the commits from which evidence carries. It is empty if there are none.
func carriedFrom(list []ledger.CarriedEvidence) string {
	var names []string
	for _, c := range list {
		way := "the same tree"
		if c.By == "merge" {
			way = "merged here"
		}
		if name := ledger.Short(c.Commit) + " (" + way + ")"; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return ", carried from " + text.JoinFirst(names, " and ")
}
