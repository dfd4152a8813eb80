package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// A verdict is the effect of one piece of evidence on one requirement.
type verdict uint8

const (
	unrelated   verdict = iota // another predicate or signer
	byAuthor                   // by the commit's author, who is excluded
	byAnyone                   // possibly by the author, who is excluded but unknown
	blocks                     // a fail or error
	notAccepted                // another status that does not count
	expired                    // older than max_age
	early                      // for DEPLOYED: recorded before the commit was PROMOTABLE
	otherSlot                  // would count, but not the person's evidence for another slot
	counts
)

// evaluate returns the status of the requirement, and when the first evidence that
// counts, or would if that for other slots did, expires, or zero for never. The evidence
// in f is the latest.
func (r *Requirement) evaluate(f *Facts, now ledger.Time, steps int) (ledger.RequirementStatus, ledger.Time) {
	s := ledger.RequirementStatus{State: r.State, Predicate: cmp.Or(r.Predicate, r.Type), Need: r.Threshold}
	excluded, unsure := r.scope(f, steps)
	if excluded != "" {
		s.Reason = "does not apply: " + excluded
		return s, 0
	}
	s.Applies = true

	verdicts := make([]verdict, len(f.Evidence))
	for i := range f.Evidence {
		verdicts[i] = r.verdict(f, &f.Evidence[i], now)
		if verdicts[i] == blocks {
			s.FailedBy = append(s.FailedBy, f.Evidence[i].Signer.String())
		}
	}
	withoutOthers(f.Evidence, verdicts)

	s.SignersCounted = signers(f.Evidence, verdicts)
	s.FailedBy = distinct(s.FailedBy)
	s.Have = len(s.SignersCounted)
	s.Met = s.Have >= s.Need && len(s.FailedBy) == 0
	s.Reason = r.reason(f, &s, verdicts)
	if unsure != "" && !s.Met {
		s.Reason += "; applies because " + unsure
	}
	return s, r.expires(f.Evidence, verdicts)
}

// expires returns when the first evidence that counts, or would if that for other slots
// did, expires, or zero for never.
func (r *Requirement) expires(evidence []Evidence, verdicts []verdict) ledger.Time {
	var expires ledger.Time
	if r.MaxAge == 0 {
		return 0
	}
	for i := range evidence {
		if verdicts[i] != counts && verdicts[i] != otherSlot {
			continue
		}
		if end := r.end(&evidence[i]); expires == 0 || end < expires {
			expires = end
		}
	}
	return expires
}

// signers returns the names of the people whose evidence counts, sorted. Of several names
// of a person, it is the first one.
func signers(evidence []Evidence, verdicts []verdict) []string {
	var people groups
	var names []string
	for i := range evidence {
		if verdicts[i] != counts {
			continue
		}
		e := &evidence[i]
		n, isNew := people.add(e)
		switch name := e.Signer.String(); {
		case isNew:
			names = append(names, name)
		case name < names[n]:
			names[n] = name
		}
	}
	slices.Sort(names)
	return names
}

// withoutOthers changes the verdict on evidence that would count if the same person's
// evidence for another slot of the predicate does not: a clean scan of one image does not
// hide that of another.
func withoutOthers(evidence []Evidence, verdicts []verdict) {
	incomplete := groups{byPredicate: true}
	for i, v := range verdicts {
		if v != counts && v != unrelated {
			incomplete.add(&evidence[i])
		}
	}
	if len(incomplete.list) == 0 {
		return
	}
	for i := range evidence {
		if verdicts[i] == counts && incomplete.find(&evidence[i]) >= 0 {
			verdicts[i] = otherSlot
		}
	}
}

// distinct sorts the names and removes duplicates.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// scope returns why the requirement does not apply to a commit, or "" if it applies. If
// there are too many changes to match each path, it applies, and unsure says why. It also
// applies without a change record, because the commit may have changed any path. The
// steps are the limit for matching one glob of paths.
func (r *Requirement) scope(f *Facts, steps int) (excluded, unsure string) {
	isTarget := func(branch string) bool { return glob.MatchAny(r.Branches, branch) }
	if len(r.Branches) > 0 && !slices.ContainsFunc(f.Targets, isTarget) {
		if len(f.Targets) == 0 {
			return "the commit has no target branch", ""
		}
		return "the target branch is " + strings.Join(f.Targets, " and "), ""
	}
	if len(r.Paths) == 0 || !f.HasChanges {
		return "", ""
	}
	if len(f.Changes) > glob.MaxMatched {
		return "", fmt.Sprintf("the commit changes more than %d paths", glob.MaxMatched)
	}
	switch matches, sure := glob.AnyMatch(r.Paths, f.Changes, steps*len(r.Paths)); {
	case !sure:
		return "", "matching the changed paths takes too long"
	case !matches:
		return "no changed path matches " + joinFirst(r.Paths, " or "), ""
	}
	return "", ""
}

// verdict returns the verdict on e. Its status is checked before its age, so that a fail
// never expires.
func (r *Requirement) verdict(f *Facts, e *Evidence, now ledger.Time) verdict {
	end := r.end(e)
	switch {
	case !r.isAbout(e) || !r.isSigner(e.Signer):
		return unrelated
	case r.ExcludeAuthor && f.isAuthor(e):
		return byAuthor
	case slices.Contains(r.Accept, e.Status):
		// Only its time can disqualify it.
	case e.Status == ledger.Fail || e.Status == ledger.Errored:
		return blocks
	default:
		return notAccepted
	}

	switch {
	case r.ExcludeAuthor && !f.hasAuthor():
		return byAnyone
	case r.State == ledger.Deployed && !e.WhilePromotable:
		return early
	case end != 0 && end <= now:
		return expired
	}
	return counts
}

// end returns when e expires, or zero for never.
func (r *Requirement) end(e *Evidence) ledger.Time {
	if r.MaxAge == 0 {
		return 0
	}
	return e.RecordedAt.Add(r.MaxAge.Std())
}

// isAbout reports whether the requirement is about the predicate of e, or about its
// type: a predicate with :// is the URI of a type.
func (r *Requirement) isAbout(e *Evidence) bool {
	switch {
	case r.Type != "":
		return matchesPredicate(r.Type, e.PredicateType)
	case IsTypePattern(r.Predicate):
		return matchesPredicate(r.Predicate, e.PredicateType)
	}
	return matchesPredicate(r.Predicate, e.Predicate)
}

// IsTypePattern reports whether a predicate in a contract or in a filter is a pattern for
// predicate types, which are URIs.
func IsTypePattern(predicate string) bool { return strings.Contains(predicate, "://") }

// matchesPredicate reports whether predicate matches pattern, which is exact or a prefix
// ending in *.
func matchesPredicate(pattern, predicate string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(predicate, prefix)
	}
	return pattern == predicate
}

func (r *Requirement) isSigner(d identity.DN) bool {
	if len(r.Signers) == 0 {
		return true
	}
	for i := range r.Signers {
		if r.Signers[i].Match(d) {
			return true
		}
	}
	return false
}

// reason returns why the requirement is met, or what is missing.
func (r *Requirement) reason(f *Facts, s *ledger.RequirementStatus, verdicts []verdict) string {
	if s.Met {
		return "met by " + joinFirst(s.SignersCounted, " and ")
	}
	if failures := reports(f.Evidence, verdicts, blocks); failures != "" {
		return failures
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d signatures", s.Predicate, s.Have, r.Threshold)
	if len(r.Signers) > 0 {
		var patterns []string
		for _, p := range r.Signers {
			patterns = append(patterns, p.String())
		}
		b.WriteString(" matching " + joinFirst(patterns, " or "))
	}
	if s.Have > 0 {
		b.WriteString(" (" + joinFirst(s.SignersCounted, " and ") + ")")
	}

	for _, note := range []struct {
		verdict verdict
		text    string
	}{
		{notAccepted, "status not accepted"},
		{expired, "expired"},
		{early, "recorded before the commit was PROMOTABLE"},
		{otherSlot, "not for each artifact"},
		{byAuthor, "by the commit's author"},
	} {
		if list := reports(f.Evidence, verdicts, note.verdict); list != "" {
			b.WriteString("; " + note.text + ": " + list)
		}
	}
	if r.ExcludeAuthor && !f.hasAuthor() {
		b.WriteString("; the commit's author is unknown (register the commit with its author)")
	}
	return b.String()
}

// reports lists the evidence that got verdict v: what was reported, and by whom.
func reports(evidence []Evidence, verdicts []verdict, v verdict) string {
	var list []string
	for i := range evidence {
		if verdicts[i] == v {
			e := &evidence[i]
			list = append(list, e.Predicate+" "+statusVerbs[e.Status]+e.inSlot()+" ("+e.Signer.String()+")")
		}
	}
	slices.Sort(list)
	return joinFirst(list, " and ")
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

// joinFirst joins the first three items and counts the others.
func joinFirst(items []string, joint string) string {
	const few = 3
	if len(items) <= few {
		return strings.Join(items, joint)
	}
	return fmt.Sprintf("%s%s%d more", strings.Join(items[:few], joint), joint, len(items)-few)
}

// A Requirement is one rule of a contract: evidence that a commit needs to reach State.
type Requirement struct {
	// Name identifies the requirement in exceptions. It is optional, and unique in the
	// contract.
	Name  string       `json:"name,omitzero"`
	State ledger.State `json:"state"`
	// Predicate is the predicate of the evidence: exact, or a prefix ending in *. With
	// ://, it is the predicate's type.
	Predicate string `json:"predicate,omitzero"`
	// Type is the predicate type of the evidence, in place of Predicate: exact, or a
	// prefix ending in *.
	Type string `json:"type,omitzero"`
	// Signers are the signers whose evidence counts. If empty, any trusted identity does.
	Signers []identity.Pattern `json:"signers"`
	// Threshold is the number of distinct signers needed.
	Threshold int `json:"threshold"`
	// Accept holds the statuses that count.
	Accept []ledger.Status `json:"accept"`
	// MaxAge is how long evidence counts after it was recorded; 0 means no limit.
	MaxAge ledger.Duration `json:"max_age,omitzero"`
	// ExcludeAuthor reports whether evidence signed by the commit's author is ignored.
	ExcludeAuthor bool `json:"exclude_author"`
	// DistinctFrom holds lower states. The people who count here must be others than
	// those needed for the requirements of these states.
	DistinctFrom []ledger.State `json:"distinct_from,omitempty"`
	// Where is a CEL expression on the statement. If it is set, evidence counts only if
	// the expression is true.
	Where string `json:"where,omitzero"`
	// Paths and Branches are globs. They limit the requirement to commits that change a
	// matching path, and to commits with a matching target branch.
	Paths    []string `json:"paths"`
	Branches []string `json:"branches"`
}
