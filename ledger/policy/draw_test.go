package policy

import (
	"fmt"
	"maps"
	"slices"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func keys[V any](m map[string]V) *rapid.Generator[string] {
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m)))
}

// drawnFrom is the first of the drawn times. Some evidence is a month older.
const drawnFrom = 2 * modelMonth

// drawContract returns a contract in the form that Parse returns.
func drawContract(t *rapid.T) Contract {
	c := Contract{Rules: Rules, Requirements: make([]Requirement, rapid.IntRange(0, 4).Draw(t, "requirements")),
		Radar: conflicts.Default()}
	for i := range c.Requirements {
		c.Requirements[i] = drawRequirement(t)
		if rapid.Bool().Draw(t, "named") {
			c.Requirements[i].Name = fmt.Sprintf("r%d", i)
		}
	}
	c.Targets = rapid.SampledFrom([]TargetRule{AllTargets, ClaimedTargets}).Draw(t, "targets")
	if rapid.Bool().Draw(t, "exceptions are open") {
		c.Exceptions.Signers = drawPatterns(t, rapid.SliceOfN(keys(modelSigners), 1, 2).Draw(t, "who may grant"))
		c.Exceptions.MaxDuration = ledger.Duration(rapid.SampledFrom([]int64{5, 20, 40}).Draw(t, "for how long") * 1e6)
	}
	c.Radar.Enabled = rapid.Bool().Draw(t, "radar")
	c.Radar.Notify = rapid.SampledFrom([]radar.Level{radar.Low, radar.Medium, radar.High}).Draw(t, "notify")
	c.Radar.Block = rapid.SampledFrom([]radar.Level{radar.NoLevel, radar.Low, radar.Medium, radar.High}).Draw(t, "block")
	return c
}

func drawRequirement(t *rapid.T) Requirement {
	r := Requirement{
		State: rapid.SampledFrom([]ledger.State{ledger.Attested, ledger.Promotable, ledger.Deployed}).Draw(t,
			"state"),
		Threshold:     rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "threshold"),
		Accept:        rapid.SliceOfNDistinct(drawStatus(), 1, 3, rapid.ID).Draw(t, "accept"),
		MaxAge:        ledger.Duration(rapid.SampledFrom([]int64{0, 0, 1, 10, 30}).Draw(t, "max age") * 1e6),
		ExcludeAuthor: AuthorRule(rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "exclude author")),
		Where:         rapid.SampledFrom([]string{"", "", "", "type == 'x'", "type == 'y'"}).Draw(t, "where"),
		Passkey:       rapid.IntRange(0, 3).Draw(t, "needs a passkey") == 0,
		Paths:         drawSome(t, "paths", modelPaths),
		Branches:      drawSome(t, "branches", modelBranches),
	}
	switch rapid.IntRange(0, 5).Draw(t, "by type") {
	case 0:
		r.Type = keys(modelTypes).Draw(t, "type")
	case 1:
		r.Predicate = keys(modelTypes).Draw(t, "predicate that is a type")
	default:
		r.Predicate = keys(modelPredicates).Draw(t, "predicate")
	}
	r.Signers = drawPatterns(t, drawSome(t, "signers", modelSigners))
	r.Covers = rapid.SampledFrom([]Coverage{CoversTree, CoversTree, CoversChange}).Draw(t, "covers")
	drawCarry(t, &r)
	for s := ledger.Attested; s < r.State; s++ {
		if rapid.Bool().Draw(t, "distinct from "+s.String()) {
			r.DistinctFrom = append(r.DistinctFrom, s)
		}
	}
	return r
}

func drawPatterns(t *rapid.T, texts []string) (patterns []identity.Pattern) {
	for _, s := range texts {
		p, err := identity.ParsePattern(s)
		must.OK(t, err)
		patterns = append(patterns, p)
	}
	return patterns
}

// drawSome returns nil half of the time, so that enough requirements apply.
func drawSome(t *rapid.T, label string, from map[string]string) []string {
	if rapid.Bool().Draw(t, "no "+label) {
		return nil
	}
	return rapid.SliceOfN(keys(from), 1, 2).Draw(t, label)
}

func drawStatus() *rapid.Generator[ledger.Status] {
	return rapid.SampledFrom(
		[]ledger.Status{ledger.Pass, ledger.Pass, ledger.Pass, ledger.Warn, ledger.Fail, ledger.Errored, ledger.Skip,
			ledger.Recorded})
}

// drawCommit draws a contract and a commit.
func drawCommit(t *rapid.T) (Contract, Facts) {
	c := drawContract(t)
	c.Rules = rapid.SampledFrom([]int{3, 4}).Draw(t, "rules")
	f := drawFacts(t, c)
	for i := range rapid.IntRange(0, 2).Draw(t, "change records") {
		e := Evidence{Attestation: fmt.Sprintf("att_9%d", i), Predicate: ledger.ChangesPredicate,
			PredicateType: ledger.ChangesType, Status: ledger.Recorded, Base: "b1",
			Slot:   rapid.SampledFrom([]string{"b1", "b2"}).Draw(t, "base"),
			Person: rapid.Int64Range(0, 1).Draw(t, "who has compared"),
			Paths:  drawPaths().Draw(t, "signed paths"), Distrusted: rapid.IntRange(0, 3).Draw(t, "distrusted") == 0}
		f.Evidence = append(f.Evidence, e)
	}
	return c, f
}

// drawFacts draws a commit, to derive its state under a contract.
func drawFacts(t *rapid.T, c Contract) Facts {
	f := drawNotRolledBack(t)
	if rapid.IntRange(0, 2).Draw(t, "was rolled back") == 0 {
		drawRollbacks(t, f.Evidence)
	}
	drawMet(t, c, &f)
	return f
}

// drawNotRolledBack draws a commit that was not rolled back.
func drawNotRolledBack(t *rapid.T) Facts {
	f := Facts{
		Authors:    rapid.SliceOfN(rapid.Custom(drawAuthor), 0, 2).Draw(t, "authors"),
		Branch:     rapid.SampledFrom([]string{"", "main", "feature-x", "topic"}).Draw(t, "branch"),
		Target:     drawTarget().Draw(t, "target"),
		Targets:    rapid.SliceOfN(drawTarget(), 0, 2).Draw(t, "targets"),
		HasChanges: rapid.Bool().Draw(t, "has changes"),
		Deployed:   rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "deployed"),
		Evidence:   rapid.SliceOfN(rapid.Custom(drawEvidence), 0, 8).Draw(t, "evidence"),
	}
	if rapid.Bool().Draw(t, "is registered") {
		f.RegisteredAt = ledger.Time(rapid.Int64Range(drawnFrom, drawnFrom+40).Draw(t, "registered at"))
	}
	f.AuthorPeople = drawPeople().Draw(t, "people who wrote the commit")
	f.SigningKeys, f.KnownAuthors = drawKeys().Draw(t, "keys"), drawKnown(t, f.Authors, f.SigningKeys)
	f.Proven = rapid.IntRange(0, 3).Draw(t, "proven") > 0
	f.Spans = drawSpans(t)
	drawSources(t, &f)
	drawIDs(t, &f)

	f.Verdicts = make(Verdicts)
	for _, e := range slices.Concat(f.Evidence, f.Carried) {
		for _, expression := range []string{"type == 'x'", "type == 'y'"} {
			switch rapid.IntRange(0, 4).Draw(t, "verdict") {
			case 0: // not evaluated
			case 1:
				f.Verdicts.Add(expression, e.Attestation, Verdict{Error: "no such key"})
			case 2:
				f.Verdicts.Add(expression, e.Attestation, Verdict{})
			default:
				f.Verdicts.Add(expression, e.Attestation, Verdict{True: true})
			}
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "exceptions") {
		recorded := rapid.Int64Range(drawnFrom, drawnFrom+40).Draw(t, "granted")
		f.Exceptions = append(f.Exceptions, Exception{
			Attestation: fmt.Sprintf("att_x%d", i),
			Requirement: rapid.SampledFrom([]string{"r0", "r0", "r1", "r2", "rollback:prod"}).Draw(t, "for"),
			Signer:      modelDNs[keys(modelDNs).Draw(t, "granted by")], Reason: "it is urgent",
			RecordedAt: ledger.Time(recorded), Until: ledger.Time(recorded + rapid.Int64Range(-5, 60).Draw(t, "until")),
		})
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "overlaps") {
		f.Overlaps = append(f.Overlaps, conflicts.Open{
			Level:  rapid.SampledFrom([]radar.Level{radar.Low, radar.Medium, radar.High}).Draw(t, "level"),
			Commit: rapid.SampledFrom([]string{"c0ffee", "decade"}).Draw(t, "other"),
			Path:   rapid.SampledFrom([]string{"a.go", "cmd/main.go"}).Draw(t, "path"),
		})
	}
	f.Attested = len(f.Evidence) > 0
	if f.HasChanges {
		f.Changes = drawPaths().Draw(t, "changes")
	}
	return f
}

func drawPaths() *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"go.mod", "cmd/main.go", "cmd/sub/x.go", "a.go", "docs/a.md"}), 0, 3)
}

// drawRollbacks makes some of the evidence rollbacks from prod, and some deployments to it.
func drawRollbacks(t *rapid.T, list []Evidence) {
	for i := range list {
		e := &list[i]
		switch rapid.IntRange(0, 2).Draw(t, "prod") {
		case 0:
			e.Predicate, e.PredicateType, e.Slot, e.Status = "rollback:prod", ledger.RollbackType, "", ledger.Recorded
		case 1:
			e.Predicate, e.PredicateType, e.Slot = "deploy:prod", ledger.ResultType, ""
		}
	}
}

func drawTarget() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"main", "main", "release/1", "release/1/2", "feature-x"})
}

func drawAuthor(t *rapid.T) ledger.Author {
	return ledger.Author{
		Name:  rapid.SampledFrom([]string{"", "Ann", "bot", "Joe", "-"}).Draw(t, "author"),
		Email: rapid.SampledFrom(slices.Sorted(maps.Keys(modelNames))).Draw(t, "author's mail"),
	}
}

func drawKeys() *rapid.Generator[[]string] {
	return rapid.SampledFrom([][]string{nil, nil, nil, {"k1"}, {"k1", "k2"}})
}

// drawKnown draws which of the names of authors and of the keys the org knows.
func drawKnown(t *rapid.T, authors []ledger.Author, keys []string) (known []string) {
	all := slices.Clone(keys)
	for _, a := range authors {
		all = append(all, modelFold(a.Name), modelFold(a.Email))
	}
	for _, name := range all {
		if name != "" && rapid.IntRange(0, 3).Draw(t, "knows "+name) > 0 {
			known = append(known, name)
		}
	}
	return known
}

func drawEvidence(t *rapid.T) Evidence {
	signer := keys(modelDNs).Draw(t, "signer")
	e := Evidence{
		Predicate: rapid.SampledFrom([]string{"test:go", "test:go", "test:js", "deploy:prod", "signed:commit", "review:code",
			"review:code"}).Draw(t, "about"),
		PredicateType: rapid.SampledFrom([]string{"https://a.example/v1", "https://b.example/v1"}).Draw(t, "type"),
		Slot:          rapid.SampledFrom([]string{"", "", "sha256:a", "sha256:b"}).Draw(t, "slot"),
		Signer:        modelDNs[signer],
		Person:        modelPeople[signer],
		Emails: rapid.SliceOfN(rapid.SampledFrom([]string{"", "ann+home@acme.org", "Eve@users.noreply.github.com"}),
			0, 2).Draw(t, "mails"),
		Status:          drawStatus().Draw(t, "status"),
		RecordedAt:      ledger.Time(rapid.Int64Range(drawnFrom, drawnFrom+40).Draw(t, "recorded")),
		Passkey:         rapid.IntRange(0, 3).Draw(t, "with a passkey") > 0,
		WhilePromotable: rapid.IntRange(0, 3).Draw(t, "while promotable") > 0,
	}
	if e.Predicate == "review:code" {
		e.Base = drawBase().Draw(t, "base")
	}
	e.Distrusted = rapid.IntRange(0, 19).Draw(t, "distrusted") == 0
	if _, ok := ledger.EnvironmentOf(e.Predicate); ok {
		e.PredicateType = ledger.ResultType // no other statements are deployments
	}
	return e
}

func drawNow(t *rapid.T) ledger.Time {
	return ledger.Time(rapid.Int64Range(drawnFrom+40, drawnFrom+60).Draw(t, "now"))
}
