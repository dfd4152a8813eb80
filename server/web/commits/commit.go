package commits

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/radar"
	"github.com/ledgerd/ledgerd/server/web/commitview"
	"github.com/ledgerd/ledgerd/server/web/draw"
	"github.com/ledgerd/ledgerd/server/web/format"
	"github.com/ledgerd/ledgerd/server/web/page"
)

const (
	timelineAttestations = 200 // on a page of the timeline
	timelineTransitions  = 100 // in the record of a commit
	transitionsShown     = 50  // on a page of transitions
	overlapsShown        = 5
	closedShown          = 5    // closed violations
	messageShown         = 5000 // characters
	changesShown         = 50   // paths
	checksShown          = 40
	shardsShown          = 10 // of a check
)

// A commitPage shows the state of a commit, and why.
type commitPage struct {
	ledger.Commit
	Subject, Body string
	// Registered reports whether the commit was registered. Otherwise the ledger
	// has only attestations of it.
	Registered bool
	// MoreViolations counts the open violations that the record leaves out.
	MoreViolations int
	// ClosedViolations are the newest that are closed. MoreClosed reports whether there
	// are others.
	ClosedViolations []ledger.Violation
	MoreClosed       bool
	Steps            []step
	Missing          []commitview.Blocker
	// Unmet are the requirements that are not met although the commit has reached their
	// state, as when it was deployed under an earlier policy. It is empty if Missing is not.
	Unmet []commitview.Blocker
	// Links leads to the repo's pages elsewhere.
	Links commitLinks
	// Checks are those of the newest attestations. MoreChecks counts those that are not shown,
	// and Older says that older attestations may have others.
	Checks      []check
	MoreChecks  int
	OlderChecks bool
	Axis        *draw.TimeAxis // nil on later pages of the timeline
	// Groups are the requirements, grouped by state.
	Groups   []requirementGroup
	Overlaps []commitview.Overlap
	// MoreOverlaps counts the overlaps that are not shown.
	MoreOverlaps int
	Timeline     []moment
	Older        string // path of the next page of the timeline; empty on the last page
	// Cut reports whether the timeline may lack the oldest transitions.
	Cut          bool
	ChangedPaths []string
	MoreChanges  int
	// Review is nil if the visitor cannot review the commit here. The live parts do not depend on it:
	// visitors share them.
	Review *reviewer
	// NoReview is why the visitor cannot review the commit here; nil if that needs no reason.
	NoReview *nonReviewer
}

// A step is a state in the progress bar of a commit.
type step struct {
	State            ledger.State
	Reached, Current bool
	// Failing reports whether a failure keeps the commit from the state.
	Failing bool
}

// A commitLinks has the addresses of a commit at the forge of its repo; empty if there are
// none.
type commitLinks struct{ Commit, Branch, Pulls string }

// A check is a check whose first shards are shown.
type check struct {
	commitview.Check
	MoreShards int
}

// A requirementGroup holds the requirements for one state.
type requirementGroup struct {
	State        ledger.State
	Reached      bool
	Requirements []requirement
}

// A requirement is a requirement with its evidence.
type requirement struct {
	ledger.RequirementStatus
	// Mark is met, failed, missing or left-out. Word is its label.
	Mark, Word string
	Signed     []evidence
	Failed     []evidence
}

// evidence is an attestation that decides a requirement.
type evidence struct {
	DN          string
	Attestation string // its ID; empty if the page does not show it
}

// A moment is an entry of a commit's timeline: an attestation, a transition,
// or, if both are nil, the commit's registration.
type moment struct {
	At          ledger.Time
	Attestation *ledger.AttestationRecord
	Transition  *ledger.Transition
	// After is how long the commit was in the previous state; -1 if not known.
	After time.Duration
}

func showCommit(v *page.Visit) (*page.Response, error) {
	commit, err := v.API.Commit(v.Ctx(), v.Org, v.Repo, v.Value("sha"))
	if err != nil {
		return nil, err
	}
	if commit.SHA != v.Value("sha") {
		return page.SeeOther(v.PathOf(page.RepoPattern, "commits", commit.SHA)), nil
	}
	p := commitPage{Commit: commit, Subject: cmp.Or(format.FirstLine(commit.Message), "No message"),
		Missing: commitview.Blockers(policy.Missing(commit.State, commit.Requirements))}
	p.Registered = commit.Message != "" || commit.Branch != "" || commit.Author != (ledger.Author{}) ||
		commit.Changes != nil
	if len(p.Missing) == 0 {
		p.Unmet = commitview.Blockers(unmet(commit.Requirements))
	}

	repo, err := v.API.Repo(v.Ctx(), v.Org, v.Repo)
	if err != nil {
		return nil, err
	}
	p.Links = linksOf(repo, commit)
	if p.Review, p.NoReview, err = reviewerOf(v, commit, repo); err != nil {
		return nil, err
	}
	p.MoreViolations = commit.OpenViolations - len(commit.Violations)
	if err := p.addClosedViolations(v); err != nil {
		return nil, err
	}
	p.Body = bodyOf(commit.Message, p.Subject)

	p.Steps = stepsOf(commit)
	shown, next, err := attestationsOf(v, commit)
	if err != nil {
		return nil, err
	}
	since, err := timelineStart(v, commit, next)
	if err != nil {
		return nil, err
	}
	p.Older, p.Cut = v.NextPage(next), len(commit.Transitions) == timelineTransitions
	p.Timeline = timeline(commit, shown, v.Query("cursor") == "", since)
	p.Groups = groupsOf(commit, slices.Concat(commit.Attestations, shown))
	if v.Query("cursor") == "" {
		p.addChecks(shown, next != "")
		p.Axis = draw.States(commit.RegisteredAt, commit.Transitions, shown, v.Now())
	}
	p.ChangedPaths, p.MoreChanges = changedPaths(commit.Changes)
	if p.Overlaps, p.MoreOverlaps, err = overlapsOf(v, commit); err != nil {
		return nil, err
	}

	resp := v.LivePage("commit", p.Subject, p, ledger.EventTypesFor(ledger.Read)...)
	resp.LiveCommit = commit.SHA
	resp.Live += "&commit=" + commit.SHA
	return resp, nil
}

// unmet returns the requirements that apply and are not met.
func unmet(requirements []ledger.RequirementStatus) []ledger.RequirementStatus {
	var unmet []ledger.RequirementStatus
	for _, r := range requirements {
		if r.Applies && !r.Met {
			unmet = append(unmet, r)
		}
	}
	return unmet
}

// addClosedViolations adds the closed violations of the commit, if it has any.
func (p *commitPage) addClosedViolations(v *page.Visit) error {
	if p.Attested == 0 {
		return nil
	}
	f := client.ViolationFilter{Repo: v.Repo, Commit: p.SHA, Status: ledger.ViolationClosed}
	list, err := v.API.ViolationsPage(v.Ctx(), v.Org, f, client.Query{Limit: closedShown})
	p.ClosedViolations, p.MoreClosed = list.Data, list.NextCursor != ""
	return err
}

// stepsOf returns the states, and which of them a failure keeps from the commit.
func stepsOf(c ledger.Commit) []step {
	failing := make(map[ledger.State]bool)
	for _, r := range c.Requirements {
		if r.IsFailed() {
			failing[r.State] = true
		}
	}
	var steps []step
	for _, s := range ledger.States() {
		steps = append(steps, step{s, s <= c.State, s == c.State, s > c.State && failing[s]})
	}
	return steps
}

// linksOf returns the addresses of a commit at the forge of its repo.
func linksOf(repo ledger.Repo, c ledger.Commit) (l commitLinks) {
	site := repo.Site()
	l.Commit = site.Commit(c.SHA)
	if c.Branch != "" {
		l.Branch = site.Branch(c.Branch)
		l.Pulls = site.Pulls(c.Branch, c.Target)
	}
	return l
}

// addChecks adds the checks of the newest attestations. older reports whether there are
// older attestations.
func (p *commitPage) addChecks(newest []ledger.AttestationRecord, older bool) {
	var carried []ledger.CarriedEvidence
	seen := make(map[string]bool)
	for _, r := range p.Requirements {
		for _, e := range r.Carried {
			if !seen[e.Attestation] {
				seen[e.Attestation] = true
				carried = append(carried, e)
			}
		}
	}

	all := commitview.Fold(newest, carried)
	for _, c := range all[:min(len(all), checksShown)] {
		shown := check{Check: c, MoreShards: max(len(c.Shards)-shardsShown, 0)}
		shown.Shards = c.Shards[:len(c.Shards)-shown.MoreShards]
		p.Checks = append(p.Checks, shown)
	}
	p.MoreChecks, p.OlderChecks = len(all)-len(p.Checks), older
}

// attestationsOf returns the attestations that the page shows, newest first,
// and the cursor of the next page.
func attestationsOf(v *page.Visit, c ledger.Commit) (shown []ledger.AttestationRecord, next string, err error) {
	if c.Attested == 0 {
		return nil, "", nil
	}
	first := v.Query("cursor") == "" // the page with the checks
	f := client.AttestationFilter{Commit: c.SHA, Verification: first}
	p, err := v.API.AttestationsPage(v.Ctx(), v.Org, v.Repo, f,
		client.Query{Limit: timelineAttestations, Cursor: v.Query("cursor")})
	return p.Data, p.NextCursor, err
}

// timelineStart returns the time after which this page of the timeline starts:
// the time of the newest attestation on the next page, or 0 if this is the last
// page.
func timelineStart(v *page.Visit, c ledger.Commit, next string) (ledger.Time, error) {
	if next == "" {
		return 0, nil
	}
	older, err := v.API.AttestationsPage(v.Ctx(), v.Org, v.Repo, client.AttestationFilter{Commit: c.SHA},
		client.Query{Limit: 1, Cursor: next})
	if err != nil || len(older.Data) == 0 {
		return 0, err
	}
	return older.Data[0].RecordedAt, nil
}

// timeline returns the entries of a page, newest first: the attestations shown,
// and the transitions after since and up to the newest of these attestations.
// The first page (newest) also has all later transitions.
func timeline(c ledger.Commit, shown []ledger.AttestationRecord, newest bool, since ledger.Time) []moment {
	var moments []moment
	within := func(at ledger.Time) bool {
		return at > since && (newest || len(shown) > 0 && at <= shown[0].RecordedAt)
	}

	// Entries are added so that the stable sort puts a transition after the
	// attestation that caused it.
	if since == 0 {
		moments = append(moments, moment{At: c.RegisteredAt})
	}
	for i := range slices.Backward(shown) {
		moments = append(moments, moment{At: shown[i].RecordedAt, Attestation: &shown[i]})
	}

	before := c.RegisteredAt
	for i := range c.Transitions {
		t := &c.Transitions[i]
		switch {
		case !within(t.At):
		case i == 0 && t.From != ledger.Draft: // the one before it is missing
			moments = append(moments, moment{At: t.At, Transition: t, After: -1})
		default:
			moments = append(moments, moment{At: t.At, Transition: t, After: t.At.Sub(before)})
		}
		before = t.At
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.At, b.At) })
	slices.Reverse(moments)
	return moments
}

// A transitionsPage lists the transitions of a commit, newest first.
type transitionsPage struct {
	SHA         string
	Transitions []ledger.Transition
	Older       string
}

func showTransitions(v *page.Visit) (*page.Response, error) {
	sha := v.Value("sha")
	list, err := v.API.TransitionsPage(v.Ctx(), v.Org, v.Repo, sha, client.Query{
		Limit: transitionsShown, Cursor: v.Query("cursor"),
	})
	if err != nil {
		return nil, err
	}
	p := transitionsPage{sha, list.Data, v.NextPage(list.NextCursor)}
	return v.Page("transitions", "Transitions", p), nil
}

// groupsOf groups the requirements of a commit by state.
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
	r.Reason = strings.TrimPrefix(s.Reason, s.Predicate+": ") // the page shows the predicate above
	switch {
	case !s.Applies:
		r.Mark, r.Word = "left-out", "Not applicable"
		r.Reason = strings.TrimPrefix(s.Reason, "does not apply: ")
	case s.Met:
		r.Mark, r.Word = "met", "Met"
	case len(s.RolledBack) > 0:
		r.Mark, r.Word = "failed", "Rolled back"
	case len(s.FailedBy) > 0:
		r.Mark, r.Word = "failed", "Failed"
	}

	for _, dn := range s.SignersCounted {
		r.Signed = append(r.Signed, evidenceOf(s.Predicate, dn, shown, false))
	}
	for _, dn := range s.FailedBy {
		r.Failed = append(r.Failed, evidenceOf(s.Predicate, dn, shown, true))
	}
	return r
}

// evidenceOf finds a signer's newest attestation for a requirement that is a failure, or that
// is none; or else the newest of any status: a contract may accept a fail, for example.
func evidenceOf(predicate, dn string, shown []ledger.AttestationRecord, isFailure bool) evidence {
	e := evidence{DN: dn}
	prefix, isPrefix := strings.CutSuffix(predicate, "*")
	for _, a := range shown {
		name := a.Predicate
		if policy.IsTypePattern(predicate) {
			name = a.PredicateType
		}
		if a.Identity != dn || name != predicate && !(isPrefix && strings.HasPrefix(name, prefix)) {
			continue
		}
		if a.Result.Status.IsFailure() == isFailure {
			e.Attestation = a.ID
			break
		}
		e.Attestation = cmp.Or(e.Attestation, a.ID)
	}
	return e
}

// bodyOf returns a message without its first line, which the page shows as the
// subject. If the subject was cut, it returns the whole message.
func bodyOf(message, subject string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if first != subject {
		rest = message
	}
	return format.Clip(strings.TrimSpace(rest), messageShown)
}

// changedPaths returns the first changed paths, each with its status, and the
// number of others.
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

// overlapsOf returns the strongest overlaps of a commit, and the number of
// others.
func overlapsOf(v *page.Visit, c ledger.Commit) ([]commitview.Overlap, int, error) {
	total := 0
	for _, n := range c.Overlaps {
		total += n
	}
	if total == 0 {
		return nil, 0, nil
	}
	p, err := page.Filled(client.Query{Limit: overlapsShown}, func(q client.Query) (ledger.Page[ledger.RadarPair], error) {
		return v.API.OverlapsPage(v.Ctx(), v.Org, v.Repo, client.OverlapFilter{Commit: c.SHA}, q)
	})
	if err != nil {
		return nil, 0, err
	}
	var overlaps []commitview.Overlap
	for _, pair := range p.Data {
		overlaps = append(overlaps, commitview.OverlapOf(c.SHA, pair))
	}
	return overlaps, max(total-len(overlaps), 0), nil
}
