package policy

import (
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
	counts
)

// evaluate returns the status of the requirement, and when the first evidence that
// counts expires, or zero for never.
func (r *Requirement) evaluate(f *Facts, now ledger.Time, steps int) (ledger.RequirementStatus, ledger.Time) {
	s := ledger.RequirementStatus{State: r.State, Predicate: r.Predicate, Need: r.Threshold}
	excluded, unsure := r.scope(f, steps)
	if excluded != "" {
		s.Reason = "does not apply: " + excluded
		return s, 0
	}
	s.Applies = true

	var expires ledger.Time
	verdicts := make([]verdict, len(f.Evidence))
	for i := range f.Evidence {
		e := &f.Evidence[i]
		verdicts[i] = r.verdict(f, e, now)
		switch verdicts[i] {
		case blocks:
			s.FailedBy = append(s.FailedBy, e.Signer.String())
		case counts:
			s.SignersCounted = append(s.SignersCounted, e.Signer.String())
			if end := r.end(e); end != 0 && (expires == 0 || end < expires) {
				expires = end
			}
		}
	}

	s.SignersCounted = distinct(s.SignersCounted)
	s.FailedBy = distinct(s.FailedBy)
	s.Have = len(s.SignersCounted)
	s.Met = s.Have >= s.Need && len(s.FailedBy) == 0
	s.Reason = r.reason(f, &s, verdicts)
	if unsure != "" && !s.Met {
		s.Reason += "; applies because " + unsure
	}
	return s, expires
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
	if len(r.Branches) > 0 && !glob.MatchAny(r.Branches, f.Target) {
		if f.Target == "" {
			return "the commit has no target branch", ""
		}
		return "the target branch is " + f.Target, ""
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
	case !matchesPredicate(r.Predicate, e.Predicate) || !r.isSigner(e.Signer):
		return unrelated
	case r.ExcludeAuthor && isAuthor(f.Author, e):
		return byAuthor
	case slices.Contains(r.Accept, e.Status):
		// Only its time can disqualify it.
	case e.Status == ledger.Fail || e.Status == ledger.Errored:
		return blocks
	default:
		return notAccepted
	}

	switch {
	case r.ExcludeAuthor && !isKnown(f.Author):
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

// isKnown reports whether the author has a name or an e-mail address.
func isKnown(a ledger.Author) bool { return strings.TrimSpace(a.Name+a.Email) != "" }

// isAuthor reports whether the signer of e is the author of the commit. It compares names
// and e-mail addresses, ignoring case.
func isAuthor(a ledger.Author, e *Evidence) bool {
	same := func(signer, author string) bool { return author != "" && strings.EqualFold(signer, author) }
	if same(e.Signer.CN, a.Name) || same(e.Signer.CN, a.Email) {
		return true
	}
	return slices.ContainsFunc(e.Emails, func(email string) bool { return same(email, a.Email) })
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
	fmt.Fprintf(&b, "%s: %d of %d signatures", r.Predicate, s.Have, r.Threshold)
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
		{byAuthor, "by the commit's author"},
	} {
		if list := reports(f.Evidence, verdicts, note.verdict); list != "" {
			b.WriteString("; " + note.text + ": " + list)
		}
	}
	if r.ExcludeAuthor && !isKnown(f.Author) {
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
			list = append(list, e.Predicate+" "+statusVerbs[e.Status]+" ("+e.Signer.String()+")")
		}
	}
	slices.Sort(list)
	return joinFirst(list, " and ")
}

var statusVerbs = map[ledger.Status]string{
	ledger.Pass: "passed", ledger.Warn: "warned", ledger.Fail: "failed", ledger.Errored: "errored", ledger.Skip: "skipped",
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
	State ledger.State `json:"state"`
	// Predicate is the predicate of the evidence: exact, or a prefix ending in *.
	Predicate string `json:"predicate"`
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
	// Paths and Branches are globs. They limit the requirement to commits that change a
	// matching path, and to commits with a matching target branch.
	Paths    []string `json:"paths"`
	Branches []string `json:"branches"`
}
