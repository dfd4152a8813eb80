package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
)

// This is the part of the model about evidence of other commits.

// modelMonth is how long evidence carries without max_age, in milliseconds.
const modelMonth = 30 * 24 * 3600 * 1000

// modelWays returns the ways in which evidence of a source carries to a requirement: "tree", and the attestations of
// claims.
func modelWays(c Contract, r Requirement, f Facts, e Evidence) (ways []string) {
	s := f.Sources[e.Source-1]
	if s.SameTree && (r.Carry == CarryTree || r.Carry == CarryTree|CarryMerge) && modelTreeCarries(r, s, e) {
		ways = append(ways, "tree")
	}
	for _, claim := range s.Claims {
		if (r.Carry == CarryMerge || r.Carry == CarryTree|CarryMerge) && modelMainlineMeets(c, r, f, claim) &&
			modelClaimCarries(r, s, claim, e) {
			ways = append(ways, claim.Attestation)
		}
	}
	return ways
}

// modelTreeCarries reports whether evidence of a source with the same tree carries. What covers changes needs a base
// that the commit has, and everything between the base and the source must be known.
func modelTreeCarries(r Requirement, s Source, e Evidence) bool {
	_, allKnown := s.Spans[e.Base]
	return r.Covers != "change" || modelIsRejection(r, e) || e.Base != "" && allKnown && s.Bases[e.Base]
}

// modelIsRejection reports whether evidence speaks against what a requirement asks for.
func modelIsRejection(r Requirement, e Evidence) bool {
	return (e.Status == "fail" || e.Status == "error") && !slices.Contains(r.Accept, e.Status) || e.Distrusted
}

// modelMainlineMeets reports whether the commit of the mainline that a claim names meets what it must: the requirement
// itself, and those up to its state that cover changes. Its evidence had not expired when the merged commit came. By a
// claim of an early release, the state of the first parent decides.
func modelMainlineMeets(c Contract, r Requirement, f Facts, claim MergeClaim) bool {
	if claim.Side == nil {
		return claim.ParentState >= r.State
	}
	meets := claim.Side.Refused == "" && claim.Side.Met[r.key()] > f.RegisteredAt
	for _, other := range c.Requirements {
		if other.Covers == "change" && other.State <= r.State {
			meets = meets && claim.Side.Met[other.key()] > f.RegisteredAt
		}
	}
	return meets
}

// modelClaimCarries reports whether evidence of a source carries by a claim that is not refused. A rejection does,
// whatever it is about. A review, and all that covers changes, needs a base on the mainline, and everything between the
// base and the source must be known. Who is not in carry_signers speaks for the own reviews alone.
func modelClaimCarries(r Requirement, s Source, claim MergeClaim, e Evidence) bool {
	mayClaim, isReview := modelIsSigner(r.CarrySigners, claim.Signer), strings.HasPrefix(e.Predicate, "review:")
	if claim.Side == nil {
		return mayClaim
	}
	if !mayClaim && !(isReview && modelCounted(modelClaimer(claim)) == modelCounted(e)) {
		return false
	}
	if modelIsRejection(r, e) || !isReview && r.Covers != "change" {
		return true
	}
	_, allKnown := s.Spans[e.Base]
	return e.Base != "" && allKnown && claim.Side.Bases[e.Base]
}

// modelClaimer returns evidence by who made a claim.
func modelClaimer(claim MergeClaim) Evidence {
	return Evidence{Signer: claim.Signer, Person: claim.Person, Individual: claim.Individual}
}

// modelEvidence returns the evidence that a requirement looks at: that of the commit, and that of the sources which
// carry to it, of each source the latest by each person. Nothing that the ledger alone may say carries, and nothing
// that is about any requirement for DEPLOYED.
func modelEvidence(c Contract, r Requirement, f Facts) []Evidence {
	list := slices.Clone(f.Evidence)
	for _, e := range f.Carried {
		if len(modelWays(c, r, f, e)) > 0 && !modelStays(c, e) && modelIsLatestOfSource(c, f, e) {
			list = append(list, e)
		}
	}
	return list
}

// modelIsLatestOfSource reports whether evidence is the latest of its source by its person, whether that carries or
// not.
func modelIsLatestOfSource(c Contract, f Facts, e Evidence) bool {
	var same []Evidence
	for _, other := range f.Carried {
		if other.Source == e.Source && other.Predicate == e.Predicate && !modelStays(c, other) {
			same = append(same, other)
		}
	}
	return modelLatest(same, e)
}

// modelStays reports whether evidence is about its commit alone.
func modelStays(c Contract, e Evidence) bool {
	prefix, _, _ := strings.Cut(e.Predicate, ":")
	stays := contains(prefix, "signed merge exception")
	for _, r := range c.Requirements {
		stays = stays || r.State == ledger.Deployed && modelIsAbout(r, e)
	}
	return stays
}

// modelEnd returns when evidence no longer counts for a requirement; 0 for never.
func modelEnd(r Requirement, f Facts, e Evidence) ledger.Time {
	switch {
	case r.MaxAge > 0:
		return e.RecordedAt + ledger.Time(r.MaxAge/1e6)
	case e.Source == 0:
		return 0
	case f.RegisteredAt > 0 && f.RegisteredAt-e.RecordedAt <= modelMonth:
		return 0 // it was not too old when the commit came
	}
	return e.RecordedAt + modelMonth
}

// modelMayBeAuthor reports whether a requirement leaves out evidence because its person
// wrote what it is about, or because it is not known well enough who did. It is enough if that is not so in one of the
// ways in which it carries.
func modelMayBeAuthor(c Contract, r Requirement, f Facts, e Evidence) bool {
	if r.ExcludeAuthor == AuthorCounts {
		return false
	}
	if e.Source == 0 {
		return !modelIsByOther(r, e, modelSince(f.Spans, e, f.authorships()[0]))
	}
	for _, way := range modelWays(c, r, f, e) {
		if modelIsByOther(r, e, modelWritten(r, f, e, way)) {
			return false
		}
	}
	return true
}

// modelIsByOther reports whether it is known who wrote all of a list, and that the person of evidence did not.
func modelIsByOther(r Requirement, e Evidence, list []authors.Authorship) bool {
	for _, a := range list {
		if modelWrote(a, e) || !modelKnows(r, a) {
			return false
		}
	}
	return true
}

// modelWritten returns who wrote what carried evidence is about: the source, all commits since the base of a review,
// and the commit itself. But of the commit that somebody in carry_signers claims to be a clean merge, only those
// count who wrote something in addition: not who has pressed its button.
func modelWritten(r Requirement, f Facts, e Evidence, way string) []authors.Authorship {
	s, own := f.Sources[e.Source-1], f.authorships()[0]
	list := modelSince(s.Spans, e, s.Authorship)
	for _, claim := range s.Claims {
		if claim.Attestation != way || claim.Side == nil {
			continue
		}
		if claim.Side.Wrote != nil {
			list = append(list, *claim.Side.Wrote)
		}
		if modelIsSigner(r.CarrySigners, claim.Signer) {
			return list
		}
	}
	return append(list, own)
}

// modelSince returns who wrote a commit, and who wrote those since the base of a review of it.
func modelSince(spans map[string]*authors.Authorship, e Evidence, commit authors.Authorship) []authors.Authorship {
	list := []authors.Authorship{commit}
	for base, span := range spans {
		if base == e.Base && strings.HasPrefix(e.Predicate, "review:") {
			list = append(list, *span)
		}
	}
	return list
}

// modelNames has the forms in which e-mail addresses are compared, by address.
var modelNames = map[string]string{
	"": "", "ann@acme.org": "ann@acme.org", "EVE": "eve", "ci@acme.org": "ci@acme.org", "-": "",
	"Ann+Work@acme.org": "ann@acme.org", "ann+home@acme.org": "ann@acme.org",
	"7+eve@users.noreply.github.com": "github:eve", "Eve@users.noreply.github.com": "github:eve",
	"7-eve@users.noreply.gitlab.com": "gitlab:eve", "noreply@github.com": "noreply@github.com",
}

// modelFold returns the form in which a name or an address is compared.
func modelFold(name string) string {
	if folded, ok := modelNames[name]; ok {
		return folded
	}
	return strings.ToLower(name)
}

// modelWrote reports whether a signer is one of the people, or has the name or the e-mail
// address of an author.
func modelWrote(s authors.Authorship, e Evidence) bool {
	names := map[string]bool{}
	for _, a := range s.Authors {
		names[modelFold(a.Name)], names[modelFold(a.Email)] = true, true
	}
	delete(names, "")
	own := names[modelFold(e.Signer.CN)] || modelIsWriter(s, e)
	for _, email := range e.Emails {
		own = own || names[modelFold(email)]
	}
	return own
}

// modelIsWriter reports whether the person of a signer, or somebody with a common name, is one of
// the people who wrote a commit.
func modelIsWriter(s authors.Authorship, e Evidence) bool {
	who, ok := modelCounted(e).(int64)
	return ok && slices.Contains(s.AuthorPeople, who)
}

// modelKnows reports whether it is known who wrote a commit: somebody with a name. By the rules
// "proven" and "known" the object says so, and by the latter the org knows everybody but a forge
// that is the second of them, the committer, and every key.
func modelKnows(r Requirement, s authors.Authorship) bool {
	if !modelHasAuthor(s.Authors) || r.ExcludeAuthor != AuthorExcluded && !s.Proven {
		return false
	}
	if r.ExcludeAuthor != KnownAuthorExcluded {
		return true
	}

	for i, a := range s.Authors {
		if i == 1 && !s.Several && a.Email == "noreply@github.com" {
			continue
		}
		isKnown := false
		for _, name := range []string{modelFold(a.Name), modelFold(a.Email)} {
			isKnown = isKnown || name != "" && slices.Contains(s.KnownAuthors, name)
		}
		if !isKnown {
			return false
		}
	}

	for _, key := range s.SigningKeys {
		if !slices.Contains(s.KnownAuthors, key) {
			return false
		}
	}
	return true
}

// modelHasAuthor reports whether any author has a name or an e-mail address.
func modelHasAuthor(authors []ledger.Author) bool {
	return slices.ContainsFunc(authors, func(a ledger.Author) bool {
		return modelFold(a.Name) != "" || modelFold(a.Email) != ""
	})
}

// compareCarried checks what the status of a requirement says about other commits.
func compareCarried(t *rapid.T, c Contract, r Requirement, f Facts, s ledger.RequirementStatus, tally modelTally) {
	want := 0
	for _, e := range f.Carried {
		if tally.counts[e.Attestation] || tally.blocks[e.Attestation] {
			want++
		}
	}
	if len(s.Carried) != min(want, ledger.MaxCarried) {
		t.Errorf("%+v is carried, want %v and %v", s.Carried, tally.counts, tally.blocks)
	}
	for _, got := range s.Carried {
		i := slices.IndexFunc(f.Carried, func(e Evidence) bool { return e.Attestation == got.Attestation })
		if i < 0 || !tally.counts[got.Attestation] && !tally.blocks[got.Attestation] {
			t.Errorf("%+v is carried, want %v and %v", got, tally.counts, tally.blocks)
			continue
		}

		e := f.Carried[i]
		way, source, ways := got.By, f.Sources[e.Source-1], modelWays(c, r, f, e)
		if way == "merge" {
			way = got.Claim
		}
		until := modelEnd(r, f, e)
		if tally.blocks[e.Attestation] {
			until = 0 // a failure never expires
		} else if r.ExcludeAuthor != AuthorCounts {
			ways = slices.DeleteFunc(ways, func(way string) bool { return !modelIsByOther(r, e, modelWritten(r, f, e, way)) })
		}
		if got.Commit != source.Commit || got.Predicate != e.Predicate || got.Status != e.Status || got.Until != until ||
			got.Identity != dnText(e.Signer) || !slices.Contains(ways, way) {
			t.Errorf("%+v is carried, want %+v of %+v by %v until %d", got, e, source, ways, until)
		}
	}

	if r.Carry != 0 && f.Incomplete != "" && len(s.FailedBy) == 0 && !strings.Contains(s.Reason, f.Incomplete) {
		t.Errorf("the reason %q does not say %q", s.Reason, f.Incomplete)
	}
}

// TestOtherCommitsDoNotCountWithoutCarry checks that facts about other commits change
// nothing for a contract without carry, nor what is about the commit alone.
func TestOtherCommitsDoNotCountWithoutCarry(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		e := drawEvidence(t)
		alone := f
		alone.Sources, alone.Carried, alone.Incomplete = nil, nil, ""
		if got, want := c.RollsBack(f, e), c.RollsBack(alone, e); got != want {
			t.Errorf("rolls back: %t, want %t", got, want)
		}

		for i := range c.Requirements {
			c.Requirements[i].Carry, c.Requirements[i].CarrySigners = 0, nil
		}
		now := drawNow(t)
		got, want := c.Derive(f, now), c.Derive(alone, now)
		if got.State != want.State || got.Expires != want.Expires {
			t.Errorf("%s until %d, want %s until %d", got.State, got.Expires, want.State, want.Expires)
		}
	})
}

// TestViolationAgainstModel checks which deployments break a policy: those that count for
// no requirement by themselves.
func TestViolationAgainstModel(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		now := drawNow(t)
		e := drawEvidence(t)
		e.Attestation = "att_z" // the latest
		f.Evidence = append(f.Evidence, e)
		f.Attested = true

		is, counts := false, false
		_, tallies := modelMet(c, f, now)
		for i, r := range c.Requirements {
			if r.State != ledger.Deployed || !modelIsAbout(r, e) || e.Status != "pass" {
				continue
			}
			is = true
			counts = counts || modelApplies(c, r, f) && modelCountsAlone(c, f, i, tallies, e)
		}
		missing, got := c.Violation(f, e, now)
		if got != (is && !counts) || got != (len(missing) > 0) {
			t.Errorf("%+v is a violation: %t (%q), a deployment: %t, counts: %t", e, got, missing, is, counts)
		}
	})
}

// modelCountsAlone reports whether evidence counts for a requirement, and its person can be
// given to the requirement if nobody else can.
func modelCountsAlone(c Contract, f Facts, i int, tallies []modelTally, e Evidence) bool {
	if !tallies[i].counts[e.Attestation] || tallies[i].blocked {
		return false
	}
	tallies = slices.Clone(tallies)
	tallies[i].people, tallies[i].needed = map[any]string{modelCounted(e): ""}, 1
	return len(c.Requirements[i].DistinctFrom) == 0 ||
		modelAssign(c, f, tallies, modelInvolved(c, f, i), map[int][]any{})
}

// TestMetAgainstModel checks until when a commit meets each requirement by its evidence alone: at any time before,
// it is met, and at none after.
func TestMetAgainstModel(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c, f := drawCommit(t)
		if rapid.Bool().Draw(t, "plain") {
			c, f = drawPlain(t)
		}
		got := c.Met(f)
		f.Exceptions = nil
		times := []ledger.Time{0, drawNow(t), 3 * drawnFrom}
		for _, until := range got {
			times = append(times, until-1, until)
		}
		for _, now := range times {
			met, _ := modelMet(c, f, now)
			for i, r := range c.Requirements {
				if want := met[i] || !modelApplies(c, r, f); now < forever && (got[r.key()] > now) != want {
					t.Errorf("requirement %d is met until %d, at %d: %t", i, got[r.key()], now, want)
				}
			}
		}
	})
}

// TestCarriedIsBounded checks that a status lists only the first pieces of carried evidence,
// though all count.
func TestCarriedIsBounded(t *testing.T) {
	c := mustParse(t, `{"state":"ATTESTED","predicate":"test:*","threshold":30,"carry":["tree"]}`)
	f := Facts{Sources: []Source{{Commit: strings.Repeat("c", 40), Authorship: proven(), SameTree: true}}}
	for i := range 30 {
		e := signed(fmt.Sprintf("cn=a%02d", 29-i), "test:go", ledger.Pass)
		e.Attestation, e.Source = fmt.Sprintf("att_%02d", 29-i), 1
		f.Carried = append(f.Carried, e)
	}

	got := c.Derive(f, policyNow)
	if r := got.Requirements[0]; got.State != ledger.Promotable || r.Have != 30 || len(r.Carried) != ledger.MaxCarried ||
		r.Carried[0].Attestation != "att_00" {
		t.Errorf("%s: %+v", got.State, r)
	}
}
