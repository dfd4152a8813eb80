package policy

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/authors"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// drawCarry lets a requirement carry evidence, as Parse allows.
func drawCarry(t *rapid.T, r *Requirement) {
	if r.State == ledger.Deployed {
		return
	}
	r.Carry = rapid.SampledFrom([]CarryRule{0, CarryTree, CarryMerge, CarryTree | CarryMerge,
		CarryTree | CarryMerge}).Draw(t, "carry")
	if r.Carry&CarryMerge != 0 {
		r.CarrySigners = drawPatterns(t, rapid.SliceOfN(keys(modelSigners), 1, 2).Draw(t, "carry signers"))
	}
}

// drawSources draws commits whose evidence may carry, and the evidence. It may have more
// than the latest.
func drawSources(t *rapid.T, f *Facts) {
	f.Sources = rapid.SliceOfN(rapid.Custom(drawSource), 0, 3).Draw(t, "sources")
	if len(f.Sources) == 0 {
		return
	}
	most := rapid.SampledFrom([]int{0, 4, 8, 8, 8, 40}).Draw(t, "carried at most")
	f.Carried = rapid.SliceOfN(rapid.Custom(drawEvidence), most/2, most).Draw(t, "carried")
	for i := range f.Carried {
		f.Carried[i].Source = 1 + rapid.IntRange(0, len(f.Sources)-1).Draw(t, "source")
	}
	f.Incomplete = rapid.SampledFrom([]string{"", "", "", "", "", "too many merges"}).Draw(t, "incomplete")

	for _, list := range [][]Evidence{f.Evidence, f.Carried} {
		for i := range list {
			if rapid.IntRange(0, 3).Draw(t, "a month ago") == 0 {
				list[i].RecordedAt -= modelMonth
			}
		}
	}
}

func drawSource(t *rapid.T) Source {
	s := Source{
		Commit:     rapid.StringMatching(`[0-9a-f]{40}`).Draw(t, "source's id"),
		Authorship: drawAuthorship(t, "source"),
		SameTree:   rapid.Bool().Draw(t, "same tree"),
	}
	s.Spans, s.Bases = drawSpans(t), drawBases(t)
	for i := range rapid.SampledFrom([]int{0, 1, 1, 2}).Draw(t, "claims") {
		s.Claims = append(s.Claims, drawClaim(t, fmt.Sprintf("att_%s%d", s.Commit[:6], i)))
	}
	return s
}

func drawAuthorship(t *rapid.T, of string) (a authors.Authorship) {
	a.Authors = rapid.SliceOfN(rapid.Custom(drawAuthor), 0, 2).Draw(t, of+"'s authors")
	a.AuthorPeople = drawPeople().Draw(t, "people who wrote the "+of)
	a.Proven = rapid.Bool().Draw(t, of+" is proven")
	a.SigningKeys = drawKeys().Draw(t, of+"'s keys")
	a.KnownAuthors = drawKnown(t, a.Authors, a.SigningKeys)
	return a
}

func drawPeople() *rapid.Generator[[]int64] {
	return rapid.SampledFrom([][]int64{nil, nil, nil, {1}, {2, 3}})
}

// drawIDs numbers the evidence in any order, and may leave out who the people are.
func drawIDs(t *rapid.T, f *Facts) {
	numbers := make([]int, len(f.Evidence)+len(f.Carried))
	for i := range numbers {
		numbers[i] = i
	}
	numbers = rapid.Permutation(numbers).Draw(t, "order of recording")
	known := rapid.Bool().Draw(t, "people are known")
	individuals := rapid.SampledFrom([]map[int64]int64{{}, {}, {}, {1: 1, 2: 1}, {2: 2, 3: 2}, {1: 1, 3: 1},
		{1: 1, 2: 1, 3: 1}}).Draw(t, "who has common names")
	for _, list := range [][]Evidence{f.Evidence, f.Carried} {
		for i := range list {
			list[i].Attestation, numbers = fmt.Sprintf("att_%02d", numbers[0]), numbers[1:]
			if !known {
				list[i].Person = 0
				continue
			}
			list[i].Individual = individuals[list[i].Person]
		}
	}

	for _, s := range f.Sources {
		for i := range s.Claims {
			if !known {
				s.Claims[i].Person = 0
				continue
			}
			s.Claims[i].Individual = individuals[s.Claims[i].Person]
		}
	}
}

// drawPlain draws a contract and a commit with little else to decide than what carries.
func drawPlain(t *rapid.T) (Contract, Facts) {
	c, f := drawContract(t), drawNotRolledBack(t)
	c.Radar.Enabled, f.Deployed = false, false
	for i := range c.Requirements {
		r := &c.Requirements[i]
		r.Where, r.Paths, r.Branches, r.Type, r.Threshold = "", nil, nil, "", 1
		r.Predicate = rapid.SampledFrom([]string{"test:go", "test:*", "*", "review:*"}).Draw(t, "plain predicate")
		r.Accept = []ledger.Status{ledger.Pass, ledger.Warn}
		if r.State == ledger.Deployed {
			r.Predicate = rapid.SampledFrom([]string{"deploy:prod", "test:js"}).Draw(t, "deployments")
		}
		if rapid.Bool().Draw(t, "any signer") {
			r.Signers = nil
		}
		if rapid.Bool().Draw(t, "no max age") {
			r.MaxAge = 0
		}
		if rapid.Bool().Draw(t, "plain authors") {
			r.ExcludeAuthor = AuthorRule(rapid.SampledFrom([]int{0, 0, 1, 2, 3, 3, 3}).Draw(t, "exclude plain authors"))
		}
	}

	f.Evidence = f.Evidence[:min(len(f.Evidence), rapid.IntRange(0, 2).Draw(t, "of its own"))]
	f.Attested = len(f.Evidence) > 0
	for _, list := range [][]Evidence{f.Evidence, f.Carried} {
		for i := range list {
			list[i].Slot, list[i].Distrusted = "", false
			list[i].Status = rapid.SampledFrom([]ledger.Status{ledger.Pass, ledger.Pass, ledger.Pass, ledger.Fail,
				ledger.Recorded}).Draw(t, "plain status")
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "known authors") > 0 {
		f.Authors, f.AuthorPeople, f.SigningKeys = []ledger.Author{{Name: "Joe"}}, nil, nil
		for _, e := range f.Carried {
			if rapid.IntRange(0, 3).Draw(t, "by a signer") == 0 {
				f.Authors = append(f.Authors, ledger.Author{Name: e.Signer.CN})
			}
		}
		f.KnownAuthors = drawKnown(t, f.Authors, nil)
		for i := range f.Sources {
			if s := &f.Sources[i]; rapid.Bool().Draw(t, "source by Joe") {
				s.Authors, s.AuthorPeople, s.SigningKeys = []ledger.Author{{Name: "Joe"}}, nil, nil
				s.Proven = rapid.IntRange(0, 3).Draw(t, "source by Joe is proven") > 0
				s.KnownAuthors = drawKnown(t, s.Authors, nil)
			}
		}
	}
	if rapid.Bool().Draw(t, "clean merges") {
		drawMerges(t, &c, &f)
	}
	drawMet(t, c, &f)
	return c, f
}

// TestDrawsReachCarrying checks that each rule of carried evidence decides about some of
// the drawn commits: without the rule, the model says something else.
func TestDrawsReachCarrying(t *testing.T) {
	type drawn struct {
		c   Contract
		f   Facts
		now ledger.Time
	}
	gen := rapid.Custom(func(t *rapid.T) drawn {
		c, f := drawPlain(t)
		return drawn{c, f, drawNow(t)}
	})

	const draws = 12_000
	rules := maps.Clone(withoutRule)
	maps.Copy(rules, withoutMergeRule)
	decides := make(map[string]int)
	for seed := range draws {
		d := gen.Example(seed)
		want := modelOutcome(d.c, d.f, d.now)
		for name, without := range rules {
			if c, f := changed(d.c, d.f, without); modelOutcome(c, f, d.now) != want {
				decides[name]++
			}
		}
	}

	t.Logf("of %d draws, decided by: %v", draws, decides)
	for name := range rules {
		if decides[name] < 3 {
			t.Errorf("%s decides %d of %d draws", name, decides[name], draws)
		}
	}
}

// modelOutcome returns what the model says about a commit: its state up to PROMOTABLE, and
// which requirements are met for those states.
func modelOutcome(c Contract, f Facts, now ledger.Time) string {
	met, tallies := modelMet(c, f, now)
	state := min(modelReached(c, f, met, tallies), ledger.Promotable)
	for i, r := range c.Requirements {
		met[i] = met[i] && r.State != ledger.Deployed
	}
	return fmt.Sprint(state, met)
}

// withoutRule changes contract and facts as if a rule did not exist.
var withoutRule = map[string]func(c *Contract, f *Facts){
	"carry tree": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			c.Requirements[i].Carry &^= CarryTree
		}
	},
	"carry merge": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			c.Requirements[i].Carry &^= CarryMerge
		}
	},
	"only with carry": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			if r := &c.Requirements[i]; r.State != ledger.Deployed {
				r.Carry |= CarryTree
			}
		}
	},
	"carry_signers": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			c.Requirements[i].CarrySigners = nil
		}
	},
	"the parent's state": func(_ *Contract, f *Facts) {
		for i := range f.Sources {
			s := &f.Sources[i]
			s.Claims = slices.Clone(s.Claims)
			for j := range s.Claims {
				s.Claims[j].ParentState = ledger.Deployed
			}
		}
	},
	"a fail carries": func(_ *Contract, f *Facts) {
		f.Carried = slices.DeleteFunc(f.Carried, func(e Evidence) bool { return e.Status == ledger.Fail })
	},
	"a later carried one replaces": func(_ *Contract, f *Facts) {
		for i := range f.Evidence {
			f.Evidence[i].Attestation = "att_9" + f.Evidence[i].Attestation
		}
	},
	"a later own one replaces": func(_ *Contract, f *Facts) {
		for i := range f.Carried {
			f.Carried[i].Attestation = "att_9" + f.Carried[i].Attestation
		}
	},
	"reserved predicates do not carry": func(_ *Contract, f *Facts) {
		for i := range f.Carried {
			if e := &f.Carried[i]; e.Predicate == "signed:commit" {
				e.Predicate = "test:js"
			}
		}
	},
	"deployments do not carry": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			if r := &c.Requirements[i]; r.State == ledger.Deployed {
				r.Predicate, r.Type = "test:none", ""
			}
		}
	},
	"a month": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			if r := &c.Requirements[i]; r.Carry != 0 && r.MaxAge == 0 {
				r.MaxAge = 100 * defaultCarryAge
			}
		}
	},
	"evidence ages": func(_ *Contract, f *Facts) { f.RegisteredAt = 0 },
	"the commit's author": func(_ *Contract, f *Facts) {
		if len(f.Evidence) == 0 && len(f.Authors) > 0 {
			f.Authors, f.AuthorPeople = []ledger.Author{{Name: "nobody"}}, nil
		}
	},
	"the source's author": func(_ *Contract, f *Facts) {
		for i := range f.Sources {
			f.Sources[i].Authors, f.Sources[i].AuthorPeople = []ledger.Author{{Name: "nobody"}}, nil
		}
	},
	"the source's unknown author": func(_ *Contract, f *Facts) {
		for i := range f.Sources {
			if s := &f.Sources[i]; !modelHasAuthor(s.Authors) {
				s.Authors = []ledger.Author{{Name: "nobody"}}
			}
		}
	},
	"proven": func(_ *Contract, f *Facts) { f.Proven = true },
	"the source is proven": func(_ *Contract, f *Facts) {
		for i := range f.Sources {
			f.Sources[i].Proven = true
		}
	},
	"known": func(_ *Contract, f *Facts) {
		f.KnownAuthors = append(identity.AuthorNames(f.Authors), f.SigningKeys...)
	},
	"the source is known": func(_ *Contract, f *Facts) {
		for i := range f.Sources {
			s := &f.Sources[i]
			s.KnownAuthors = append(identity.AuthorNames(s.Authors), s.SigningKeys...)
		}
	},
	"passkey": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			c.Requirements[i].Passkey = false
		}
	},
	"incomplete": func(_ *Contract, f *Facts) { f.Incomplete = "" },
	"distinct_from": func(c *Contract, _ *Facts) {
		for i := range c.Requirements {
			if c.Requirements[i].Carry != 0 {
				c.Requirements[i].DistinctFrom = nil
			}
		}
	},
}
