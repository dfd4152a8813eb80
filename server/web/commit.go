package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/overlap"
)

const (
	// timelineAttestations is how many attestations a commit's page shows.
	timelineAttestations = 200
	// overlapsShown is how many overlaps are shown.
	overlapsShown = 5
	// messageShown is how many characters of a commit's message are shown.
	messageShown = 5000
	// changesShown is how many of the changed paths are.
	changesShown = 50
)

// A commitPage shows where a commit stands and why.
type commitPage struct {
	ledger.Commit
	Subject, Body string
	// Registered reports whether somebody has registered the commit; it may also be
	// known by its attestations alone.
	Registered bool
	Steps      []step
	Missing    []lack
	// Groups are the requirements by the state that they are for.
	Groups   []requirementGroup
	Overlaps []overlap.Overlap
	// MoreOverlaps counts those that are not shown.
	MoreOverlaps int
	Timeline     []moment
	Older        string // path of the attestations before those shown
	ChangedPaths []string
	MoreChanges  int
}

// A step is one of the states that a commit goes through.
type step struct {
	State            ledger.State
	Reached, Current bool
}

// A requirementGroup is what the policy asks for one state.
type requirementGroup struct {
	State        ledger.State
	Reached      bool
	Requirements []requirement
}

// A requirement tells what has become of one.
type requirement struct {
	ledger.RequirementStatus
	// Mark is met, failed, missing or left-out.
	Mark, Word string
	Signed     []evidence
	Failed     []evidence
}

// evidence is an attestation that decides a requirement.
type evidence struct {
	DN          string
	Attestation string // its id, where it is among those shown
}

// A moment is one entry of a commit's timeline: an attestation, a transition,
// or, where both are nil, the commit's registration.
type moment struct {
	At          ledger.Time
	Attestation *ledger.AttestationRecord
	Transition  *ledger.Transition
	// After is how long the commit was in the state before.
	After time.Duration
}

func showCommit(v *visit) (*answer, error) {
	commit, err := v.api.Commit(v.ctx(), v.org, v.repo, v.value("sha"))
	if err != nil {
		return nil, err
	}
	if commit.SHA != v.value("sha") {
		return seeOther(v.pathOf(repoPattern, "commits", commit.SHA)), nil
	}
	p := commitPage{Commit: commit, Subject: cmp.Or(format.FirstLine(commit.Message), "No message"),
		Missing: lacksOf(policy.Missing(commit.State, commit.Requirements))}
	p.Registered = commit.Message != "" || commit.Branch != "" || commit.Author != (ledger.Author{}) || commit.Changes != nil
	p.Body = bodyOf(commit.Message, p.Subject)
	for _, state := range ledger.States() {
		p.Steps = append(p.Steps, step{state, state <= commit.State, state == commit.State})
	}
	shown, next, err := attestationsOf(v, commit)
	if err != nil {
		return nil, err
	}
	since, err := beginOf(v, commit, next)
	if err != nil {
		return nil, err
	}
	p.Older = nextPage(v, next)
	p.Timeline = timeline(commit, shown, v.query("cursor") == "", since)
	p.Groups = groupsOf(commit, slices.Concat(commit.Attestations, shown))
	p.ChangedPaths, p.MoreChanges = changedPaths(commit.Changes)
	if p.Overlaps, p.MoreOverlaps, err = overlapsOf(v, commit); err != nil {
		return nil, err
	}
	a := v.livePage("commit", p.Subject, p, ledger.EventTypes()...)
	a.liveCommit = commit.SHA
	return a, nil
}

// attestationsOf returns those of the commit that the page shows, the newest
// first, and the cursor of what comes behind them.
func attestationsOf(v *visit, c ledger.Commit) (shown []ledger.AttestationRecord, next string, err error) {
	if v.query("cursor") == "" && c.Attested <= int64(len(c.Attestations)) {
		return c.Attestations, "", nil
	}
	page, err := v.api.AttestationsPage(v.ctx(), v.org, v.repo, client.AttestationFilter{Commit: c.SHA},
		client.Query{Limit: timelineAttestations, Cursor: v.query("cursor")})
	return page.Data, page.NextCursor, err
}

// beginOf returns the time behind which the page's part of the timeline begins:
// that of the newest attestation on the page of the cursor next; 0 for the
// whole beginning.
func beginOf(v *visit, c ledger.Commit, next string) (ledger.Time, error) {
	if next == "" {
		return 0, nil
	}
	older, err := v.api.AttestationsPage(v.ctx(), v.org, v.repo, client.AttestationFilter{Commit: c.SHA},
		client.Query{Limit: 1, Cursor: next})
	if err != nil || len(older.Data) == 0 {
		return 0, err
	}
	return older.Data[0].RecordedAt, nil
}

// timeline lists what happened, the newest first: the attestations shown, and
// the transitions since the time given until the last of them; the newest page
// has all later ones too.
func timeline(c ledger.Commit, shown []ledger.AttestationRecord, newest bool, since ledger.Time) []moment {
	var moments []moment
	within := func(at ledger.Time) bool {
		return at > since && (newest || len(shown) > 0 && at <= shown[0].RecordedAt)
	}
	// In the order of their happening: what an attestation brought about comes
	// behind it.
	if since == 0 {
		moments = append(moments, moment{At: c.RegisteredAt})
	}
	for i := range slices.Backward(shown) {
		moments = append(moments, moment{At: shown[i].RecordedAt, Attestation: &shown[i]})
	}
	before := c.RegisteredAt
	for i := range c.Transitions {
		t := &c.Transitions[i]
		if within(t.At) {
			moments = append(moments, moment{At: t.At, Transition: t, After: t.At.Sub(before)})
		}
		before = t.At
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.At, b.At) })
	slices.Reverse(moments)
	return moments
}

// groupsOf puts requirements under their states.
func groupsOf(c ledger.Commit, shown []ledger.AttestationRecord) []requirementGroup {
	var groups []requirementGroup
	for state := ledger.Attested; state <= ledger.Deployed; state++ {
		g := requirementGroup{State: state, Reached: c.State >= state}
		for _, r := range c.Requirements {
			if r.State == state {
				g.Requirements = append(g.Requirements, requirementOf(r, shown))
			}
		}
		groups = append(groups, g)
	}
	return groups
}

func requirementOf(s ledger.RequirementStatus, shown []ledger.AttestationRecord) requirement {
	r := requirement{RequirementStatus: s, Mark: "missing", Word: "Not met"}
	switch {
	case !s.Applies:
		r.Mark, r.Word = "left-out", "Not applicable"
	case s.Met:
		r.Mark, r.Word = "met", "Met"
	case len(s.FailedBy) > 0:
		r.Mark, r.Word = "failed", "Failed"
	}
	for _, dn := range s.SignersCounted {
		r.Signed = append(r.Signed, evidenceOf(
			s.Predicate, dn, shown, func(st ledger.Status) bool { return st != ledger.Fail && st != ledger.Errored }))
	}
	for _, dn := range s.FailedBy {
		r.Failed = append(r.Failed, evidenceOf(
			s.Predicate, dn, shown, func(st ledger.Status) bool { return st == ledger.Fail || st == ledger.Errored }))
	}
	return r
}

// evidenceOf finds the newest attestation that a signer made for a requirement
// with such a status; a contract may also accept a fail, and then any will do.
func evidenceOf(predicate, dn string, shown []ledger.AttestationRecord, fits func(ledger.Status) bool) evidence {
	e := evidence{DN: dn}
	prefix, isPrefix := strings.CutSuffix(predicate, "*")
	for _, a := range shown {
		if a.Identity != dn || a.Predicate != predicate && !(isPrefix && strings.HasPrefix(a.Predicate, prefix)) {
			continue
		}
		if fits(a.Result.Status) {
			e.Attestation = a.ID
			break
		}
		e.Attestation = cmp.Or(e.Attestation, a.ID)
	}
	return e
}

// bodyOf returns what a message says beside its first line, which is shown as
// the subject, unless that had to be cut.
func bodyOf(message, subject string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if first != subject {
		rest = message
	}
	return format.Clip(strings.TrimSpace(rest), messageShown)
}

func changedPaths(changes []radar.Change) (paths []string, more int) {
	for _, c := range changes[:min(len(changes), changesShown)] {
		path := format.Clip(c.Path, 300)
		if c.OldPath != "" {
			path = format.Clip(c.OldPath, 300) + " → " + path
		}
		paths = append(paths, c.Status+" "+path)
	}
	return paths, len(changes) - len(paths)
}

// overlapsOf returns the strongest overlaps of a commit, and how many more
// there are.
func overlapsOf(v *visit, c ledger.Commit) ([]overlap.Overlap, int, error) {
	total := 0
	for _, n := range c.Overlaps {
		total += n
	}
	if total == 0 {
		return nil, 0, nil
	}
	page, err := v.api.OverlapsPage(v.ctx(), v.org, v.repo, client.OverlapFilter{Commit: c.SHA},
		client.Query{Limit: overlapsShown})
	if err != nil {
		return nil, 0, err
	}
	var overlaps []overlap.Overlap
	for _, pair := range page.Data {
		overlaps = append(overlaps, overlap.Of(c.SHA, pair))
	}
	return overlaps, max(total-len(overlaps), 0), nil
}
