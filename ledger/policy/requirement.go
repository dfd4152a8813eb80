package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/glob"
)

// A verdict is what one piece of evidence means to one requirement.
type verdict uint8

const (
	unrelated   verdict = iota // about something else, or by somebody else
	byAuthor                   // by the commit's author, who is excluded
	byAnyone                   // perhaps by the author, who is excluded but not known
	blocks                     // a fail or error
	notAccepted                // another status that does not count
	expired                    // older than max_age
	early                      // for DEPLOYED, from before the commit was PROMOTABLE
	counts
)

// judge tells what has become of the requirement, and when the first of what
// counts for it runs out (zero: never).
func (r *Requirement) judge(f *Facts, now ledger.Time, steps int) (ledger.RequirementStatus, ledger.Time) {
	s := ledger.RequirementStatus{State: r.State, Predicate: r.Predicate, Need: r.Threshold}
	leftOut, unsure := r.scope(f, steps)
	if leftOut != "" {
		s.Reason = "does not apply: " + leftOut
		return s, 0
	}
	s.Applies = true
	var expires ledger.Time
	weighed := make([]verdict, len(f.Evidence))
	for i := range f.Evidence {
		e := &f.Evidence[i]
		weighed[i] = r.weigh(f, e, now)
		switch weighed[i] {
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
	s.Reason = r.reason(f, &s, weighed)
	if unsure != "" && !s.Met {
		s.Reason += "; applies because " + unsure
	}
	return s, expires
}

// distinct sorts the names and leaves each in once.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// scope says why the requirement does not apply to a commit; empty if it does.
// A commit without a change record may have changed anything, and so may one
// that changes too much to look at each path: unsure says why. The steps are
// those that each glob of paths may take.
func (r *Requirement) scope(f *Facts, steps int) (leftOut, unsure string) {
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
		return "no changed path matches " + some(r.Paths, " or "), ""
	}
	return "", ""
}

// weigh tells what e means to the requirement. What says no is weighed before
// what makes evidence too old.
func (r *Requirement) weigh(f *Facts, e *Evidence, now ledger.Time) verdict {
	end := r.end(e)
	switch {
	case !matchesPredicate(r.Predicate, e.Predicate) || !r.isSigner(e.Signer):
		return unrelated
	case r.ExcludeAuthor && isAuthor(f.Author, e):
		return byAuthor
	case slices.Contains(r.Accept, e.Status):
		// Nothing against it but time.
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

// end returns the moment from which e is too old; zero if it never is.
func (r *Requirement) end(e *Evidence) ledger.Time {
	if r.MaxAge == 0 {
		return 0
	}
	return e.RecordedAt.Add(r.MaxAge.Std())
}

// matchesPredicate reports whether pattern, exact or a prefix ending in *,
// means predicate.
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

// isKnown reports whether there is a name or an address to tell the author by.
func isKnown(a ledger.Author) bool { return strings.TrimSpace(a.Name+a.Email) != "" }

// isAuthor reports whether e is by the author of the commit: by name or by
// e-mail address, in letters of any case.
func isAuthor(a ledger.Author, e *Evidence) bool {
	same := func(signer, author string) bool { return author != "" && strings.EqualFold(signer, author) }
	if same(e.Signer.CN, a.Name) || same(e.Signer.CN, a.Email) {
		return true
	}
	return slices.ContainsFunc(e.Emails, func(email string) bool { return same(email, a.Email) })
}

// reason says in a sentence why the requirement is met or what is missing.
func (r *Requirement) reason(f *Facts, s *ledger.RequirementStatus, weighed []verdict) string {
	if s.Met {
		return "met by " + some(s.SignersCounted, " and ")
	}
	if failures := reports(f.Evidence, weighed, blocks); failures != "" {
		return failures
	}

	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d signatures", r.Predicate, s.Have, r.Threshold)
	if len(r.Signers) > 0 {
		var patterns []string
		for _, p := range r.Signers {
			patterns = append(patterns, p.String())
		}
		b.WriteString(" matching " + some(patterns, " or "))
	}
	if s.Have > 0 {
		b.WriteString(" (" + some(s.SignersCounted, " and ") + ")")
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
		if list := reports(f.Evidence, weighed, note.verdict); list != "" {
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
	return some(list, " and ")
}

var statusVerbs = map[ledger.Status]string{
	ledger.Pass: "passed", ledger.Warn: "warned", ledger.Fail: "failed", ledger.Errored: "errored", ledger.Skip: "skipped",
}

// some joins the first few of the items and counts the others.
func some(items []string, joint string) string {
	const few = 3
	if len(items) <= few {
		return strings.Join(items, joint)
	}
	return fmt.Sprintf("%s%s%d more", strings.Join(items[:few], joint), joint, len(items)-few)
}

// A Requirement is one thing that a commit needs to reach State.
type Requirement struct {
	State ledger.State `json:"state"`
	// Predicate is what the evidence has to be about: exact, or a prefix
	// ending in *.
	Predicate string `json:"predicate"`
	// Signers are those whose evidence counts; any trusted identity if empty.
	Signers []identity.Pattern `json:"signers"`
	// Threshold is how many distinct signers are needed.
	Threshold int `json:"threshold"`
	// Accept are the statuses that count.
	Accept []ledger.Status `json:"accept"`
	// MaxAge is how long evidence counts after it was recorded; for ever if 0.
	MaxAge ledger.Duration `json:"max_age,omitzero"`
	// ExcludeAuthor leaves out the commit's author as a signer.
	ExcludeAuthor bool `json:"exclude_author"`
	// Paths and Branches are globs that limit the requirement to commits that
	// change such a path, and to commits meant for such a branch.
	Paths    []string `json:"paths"`
	Branches []string `json:"branches"`
}
