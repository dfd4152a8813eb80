package policy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
)

// drawClaim draws a claim, whose commit of the mainline meets nothing yet.
func drawClaim(t *rapid.T, attestation string) MergeClaim {
	signer := keys(modelDNs).Draw(t, "claimed by")
	claim := MergeClaim{
		Attestation: attestation,
		Kind:        rapid.SampledFrom([]string{"merge", "squash", "update", "rebase"}).Draw(t, "kind"),
		Signer:      modelDNs[signer], Person: modelPeople[signer],
		ParentState: rapid.SampledFrom(ledger.States()).Draw(t, "parent's state"),
	}
	if rapid.IntRange(0, 2).Draw(t, "early") == 0 {
		return claim
	}

	claim.Side = &Side{
		Commit:  strings.Repeat("b", 40),
		Refused: rapid.SampledFrom([]string{"", "", "", "", "another tree"}).Draw(t, "refused"),
		Met:     make(Met), Bases: drawBases(t),
	}
	if claim.Kind == "squash" || claim.Kind == "rebase" {
		wrote := drawAuthorship(t, "merge")
		wrote.Several = true
		claim.Side.Wrote = &wrote
	}
	return claim
}

// drawBases draws which bases a commit contains.
func drawBases(t *rapid.T) map[string]bool {
	bases := make(map[string]bool)
	for _, base := range []string{"b1", "b2"} {
		if n := rapid.IntRange(0, 4).Draw(t, base+" is contained"); n > 0 {
			bases[base] = n > 1
		}
	}
	return bases
}

// drawMet draws until when the mainline meets the requirements of a contract.
func drawMet(t *rapid.T, c Contract, f *Facts) {
	for _, s := range f.Sources {
		for _, claim := range s.Claims {
			if claim.Side == nil {
				continue
			}
			for _, r := range c.Requirements {
				until := rapid.SampledFrom([]ledger.Time{-1, f.RegisteredAt, f.RegisteredAt + 1, forever, forever, forever,
					forever, forever}).Draw(t, "met until")
				if until >= 0 {
					claim.Side.Met[r.key()] = until
				}
			}
		}
	}
}

// drawBase draws the base of a review. Some have none.
func drawBase() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "b1", "b1", "b1", "b2"})
}

// drawSpans draws who wrote the commits since some bases.
func drawSpans(t *rapid.T) map[string]*authors.Authorship {
	spans := make(map[string]*authors.Authorship)
	for _, base := range []string{"b1", "b1", "b2"} {
		if rapid.Bool().Draw(t, "all commits since "+base+" are known") {
			span := drawAuthorship(t, "commits between")
			span.Several = true
			spans[base] = &span
		}
	}
	return spans
}

// drawMerges makes most claims those of clean merges which may count, and most evidence reviews that may carry by them.
func drawMerges(t *rapid.T, c *Contract, f *Facts) {
	for i := range c.Requirements {
		r := &c.Requirements[i]
		if r.State == ledger.Deployed {
			continue
		}
		r.Signers, r.Passkey = nil, false
		if i == 0 && rapid.Bool().Draw(t, "the first by tree") {
			r.State, r.Carry, r.CarrySigners, r.Covers, r.DistinctFrom = ledger.Attested, CarryTree, nil, CoversChange, nil
			continue
		}
		r.Carry, r.CarrySigners = r.Carry|CarryMerge, drawPatterns(t, []string{keys(modelSigners).Draw(t, "may claim")})
		if rapid.IntRange(0, 3).Draw(t, "of reviews") > 0 {
			r.Predicate, r.Covers = "review:*", CoversChange
		}
		if rapid.IntRange(0, 5).Draw(t, "rejections count") == 0 {
			r.Accept = []ledger.Status{ledger.Pass, ledger.Fail}
		}
	}
	byOne := rapid.IntRange(0, 3).Draw(t, "all by one") == 0
	for i := range f.Carried {
		e := &f.Carried[i]
		if byOne {
			e.Signer, e.Person, e.Individual = f.Carried[0].Signer, f.Carried[0].Person, f.Carried[0].Individual
		}
		if rapid.IntRange(0, 3).Draw(t, "a review") > 0 {
			e.Predicate, e.Base = "review:code", drawBase().Draw(t, "base of a plain review")
		}
	}

	for i := range f.Sources {
		s := &f.Sources[i]
		s.SameTree = s.SameTree && rapid.IntRange(0, 3).Draw(t, "same tree too") == 0
		for base := range s.Spans {
			if rapid.Bool().Draw(t, "by Joe since "+base) {
				s.Spans[base] = joe()
			}
		}
		if rapid.Bool().Draw(t, "all by Joe") {
			s.Authorship = *joe()
			if rapid.Bool().Draw(t, "who is a stranger") {
				s.KnownAuthors = nil
			}
		}
		for j := range s.Claims {
			if claim := &s.Claims[j]; claim.Side != nil && claim.Side.Wrote != nil && rapid.Bool().Draw(t, "merge by Joe") {
				claim.Side.Wrote = joe()
				if e := f.Carried; len(e) > 0 && rapid.IntRange(0, 3).Draw(t, "and a signer") == 0 {
					wrote := &claim.Side.Wrote.Authors
					*wrote = append(*wrote, ledger.Author{Name: e[0].Signer.CN})
				}
			}
		}
	}
}

// joe is no signer.
func joe() *authors.Authorship {
	return &authors.Authorship{Authors: []ledger.Author{{Name: "Joe"}}, KnownAuthors: []string{"joe"}, Proven: true,
		Several: true}
}

// changed returns a contract and a commit as a function changes them. The mainline goes on to meet the requirements
// that it has met, though these are others now.
func changed(c Contract, f Facts, change func(c *Contract, f *Facts)) (Contract, Facts) {
	before := c.Requirements
	c.Requirements = slices.Clone(c.Requirements)
	f.Evidence, f.Carried, f.Sources = slices.Clone(f.Evidence), slices.Clone(f.Carried), slices.Clone(f.Sources)
	for i := range f.Sources {
		s := &f.Sources[i]
		s.Spans, s.Bases, s.Claims = maps.Clone(s.Spans), maps.Clone(s.Bases), slices.Clone(s.Claims)
		for j := range s.Claims {
			if claim := &s.Claims[j]; claim.Side != nil {
				side := *claim.Side
				side.Bases, side.Met = maps.Clone(side.Bases), maps.Clone(side.Met)
				claim.Side = &side
			}
		}
	}

	change(&c, &f)
	for side := range sides(&f) {
		met := side.Met
		side.Met = make(Met)
		for i := range before {
			side.Met[c.Requirements[i].key()] = met[before[i].key()]
		}
	}
	return c, f
}

// sides returns the commits of the mainline that claims name.
func sides(f *Facts) iter.Seq[*Side] {
	return func(yield func(*Side) bool) {
		for _, s := range f.Sources {
			for _, claim := range s.Claims {
				if claim.Side != nil && !yield(claim.Side) {
					return
				}
			}
		}
	}
}

// withoutMergeRule is withoutRule, for the rules of clean merges.
var withoutMergeRule = map[string]func(c *Contract, f *Facts){
	"a refused claim carries nothing": func(_ *Contract, f *Facts) {
		for side := range sides(f) {
			side.Refused = ""
		}
	},
	"the mainline meets the same": func(c *Contract, f *Facts) {
		for _, r := range c.Requirements {
			if r.Covers != CoversChange {
				meets(f, r)
			}
		}
	},
	"the mainline meets what covers changes": func(c *Contract, f *Facts) {
		for _, r := range c.Requirements {
			if r.Covers == CoversChange && r.Carry&CarryMerge == 0 { // so that it is not the requirement itself
				meets(f, r)
			}
		}
	},
	"only up to the state": func(c *Contract, f *Facts) {
		for side := range sides(f) {
			for _, r := range c.Requirements {
				if r.Covers == CoversChange && side.Met[r.key()] <= f.RegisteredAt {
					side.Refused = r.Name + " is not met"
				}
			}
		}
	},
	"the evidence of the mainline ages": func(_ *Contract, f *Facts) {
		for side := range sides(f) {
			for key, until := range side.Met {
				if until > 0 {
					side.Met[key] = forever
				}
			}
		}
	},
	"it does not age once the merge has come": func(_ *Contract, f *Facts) {
		for side := range sides(f) {
			for key, until := range side.Met {
				if until < forever { // which is long ago
					delete(side.Met, key)
				}
			}
		}
	},
	"a review needs a base": func(_ *Contract, f *Facts) {
		for i := range f.Carried {
			if e := &f.Carried[i]; e.IsReview() && e.Base == "" {
				e.Base = "b0"
			}
		}
		for i := range f.Sources {
			f.Sources[i].Spans["b0"], f.Sources[i].Bases["b0"] = joe(), true
		}
		for side := range sides(f) {
			side.Bases["b0"] = true
		}
	},
	"by tree, the commit contains the base": func(_ *Contract, f *Facts) {
		for i := range f.Sources {
			f.Sources[i].Bases = map[string]bool{"b1": true, "b2": true}
		}
	},
	"the base is on the mainline": func(_ *Contract, f *Facts) {
		for side := range sides(f) {
			side.Bases["b1"], side.Bases["b2"] = true, true
		}
	},
	"all commits since the base are known": func(_ *Contract, f *Facts) {
		for _, s := range f.Sources {
			for _, base := range []string{"b1", "b2"} {
				if s.Spans[base] == nil {
					s.Spans[base] = joe()
				}
			}
		}
	},
	"what covers changes needs a base": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			c.Requirements[i].Covers = CoversTree
		}
	},
	"a rejection needs no base": func(_ *Contract, f *Facts) {
		f.Carried = slices.DeleteFunc(f.Carried, func(e Evidence) bool {
			return e.IsReview() && e.Status == ledger.Fail && f.Sources[e.Source-1].Spans[e.Base] == nil
		})
	},
	"who wrote a commit between": func(_ *Contract, f *Facts) {
		for _, s := range f.Sources {
			for base := range s.Spans {
				s.Spans[base] = joe()
			}
		}
	},
	"who wrote a commit between, since the base of an own review": func(_ *Contract, f *Facts) { f.Spans = nil },
	"who presses the button is no author": func(_ *Contract, f *Facts) {
		for side := range sides(f) {
			own := f.authorships()[0]
			side.Wrote = &own
		}
	},
	"who claims their own merge": func(_ *Contract, f *Facts) {
		if len(f.Evidence) == 0 && !slices.ContainsFunc(f.Sources, func(s Source) bool { return s.SameTree }) {
			f.Authors, f.AuthorPeople, f.KnownAuthors, f.Proven = joe().Authors, nil, joe().KnownAuthors, true
			f.SigningKeys = nil
		}
	},
	"who wrote a squash": func(_ *Contract, f *Facts) {
		for side := range sides(f) {
			side.Wrote = nil
		}
	},
	"a claim carries the claimer's own reviews": func(_ *Contract, f *Facts) {
		for _, s := range f.Sources {
			for i := range s.Claims {
				if s.Claims[i].Side != nil {
					s.Claims[i].Person, s.Claims[i].Individual = 99, 99
				}
			}
		}
	},
	"a claim of an early release carries no own reviews": func(c *Contract, f *Facts) {
		for _, s := range f.Sources {
			for i := range s.Claims {
				claim := &s.Claims[i]
				mayClaim := slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
					return modelIsSigner(r.CarrySigners, claim.Signer)
				})
				if claim.Side == nil && !mayClaim {
					claim.Side = &Side{Met: make(Met), Bases: map[string]bool{"b1": true, "b2": true}}
				}
			}
		}
		for _, r := range c.Requirements {
			for _, s := range f.Sources {
				for _, claim := range s.Claims {
					if claim.Side != nil && claim.Side.Commit == "" {
						claim.Side.Met[r.key()] = forever
					}
				}
			}
		}
	},
	"the latest of a source replaces, though it does not carry": func(_ *Contract, f *Facts) {
		f.Carried = slices.DeleteFunc(f.Carried, func(e Evidence) bool {
			s := f.Sources[e.Source-1]
			return e.IsReview() && e.Status != ledger.Fail && !s.SameTree && s.Spans[e.Base] == nil
		})
	},
}

// meets has the mainline meet a requirement.
func meets(f *Facts, r Requirement) {
	for side := range sides(f) {
		side.Met[r.key()] = forever
	}
}
