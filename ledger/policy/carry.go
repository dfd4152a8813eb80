package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// Carries reports whether any requirement takes evidence of other commits into account. If
// so, Derive needs Facts.Sources and Facts.Carried.
func (c *Contract) Carries() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return r.Carry != 0 })
}

// MayCarry reports whether a claim of a merge by d may carry evidence to a requirement.
func (c *Contract) MayCarry(d identity.DN) bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
		return r.Carry&CarryMerge != 0 && matchesAny(r.CarrySigners, d)
	})
}

// CarriesMerges reports whether evidence may carry by claims of merges: by anybody's, that person's own reviews.
func (c *Contract) CarriesMerges() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool { return r.Carry&CarryMerge != 0 })
}

// CarriesChanges reports whether evidence that covers changes may carry between commits with the same tree. If so,
// Derive needs Source.Bases.
func (c *Contract) CarriesChanges() bool {
	return slices.ContainsFunc(c.Requirements, func(r Requirement) bool {
		return r.Carry&CarryTree != 0 && r.Covers == CoversChange
	})
}

// carriable returns the evidence of other commits that may carry. Deployments do not, nor
// does evidence that is about one commit only. If it is by too many names, only failures carry, and
// f.NotCarried says so.
func (c *Contract) carriable(f *Facts) []Evidence {
	if len(f.Carried) == 0 || !c.Carries() {
		return nil
	}
	list := make([]Evidence, 0, len(f.Carried))
	for i := range f.Carried {
		if e := &f.Carried[i]; !e.isReserved() && !c.isDeployment(e) {
			list = append(list, *e)
		}
	}

	if len(list) > MaxSigners && len(SignersOf(list)) > MaxSigners {
		f.NotCarried = fmt.Sprintf("only failures carry: more than %d names have signed what might carry", MaxSigners)
		list = slices.DeleteFunc(list, func(e Evidence) bool { return !e.Status.IsFailure() })
	}
	return list
}

// isReserved reports whether the predicate of e is reserved. A result that an earlier release has
// recorded under a name that is reserved since is an ordinary one.
func (e *Evidence) isReserved() bool {
	return ledger.ReservedPrefix(e.Predicate) != "" && e.PredicateType != ledger.ResultType
}

// isDeployment reports whether a requirement for DEPLOYED is about e.
func (c *Contract) isDeployment(e *Evidence) bool {
	for i := range c.Requirements {
		if r := &c.Requirements[i]; r.State == ledger.Deployed && r.isAbout(e) {
			return true
		}
	}
	return false
}

// forever is until when a requirement is met whose evidence does not expire, or that does not apply.
const forever = ledger.Time(math.MaxInt64)

// Encode returns m as DecodeMet reads it: equal texts for equal times.
func (m Met) Encode() string {
	times := make(map[string]int64, len(m))
	for key, until := range m {
		times[key] = int64(until)
	}
	encoded, err := json.Marshal(times, json.Deterministic(true))
	if err != nil {
		panic("ledger: encode what a commit meets: " + err.Error()) // it has only texts and numbers
	}
	return string(encoded)
}

// DecodeMet returns what Encode has encoded.
func DecodeMet(encoded string) (Met, error) {
	var times map[string]int64
	if err := json.Unmarshal([]byte(encoded), &times); err != nil {
		return nil, fmt.Errorf("decode what a commit meets: %w", err)
	}
	m := make(Met, len(times))
	for key, until := range times {
		m[key] = ledger.Time(until)
	}
	return m, nil
}

// lacks returns a requirement that a commit did not meet at a time, of the given one and those up to its state that
// cover changes. It is nil if it met all.
func (m Met) lacks(c *Contract, r *Requirement, at ledger.Time) *Requirement {
	if m[r.key()] <= at {
		return r
	}
	for i := range c.Requirements {
		if q := &c.Requirements[i]; q.Covers == CoversChange && q.State <= r.State && m[q.key()] <= at {
			return q
		}
	}
	return nil
}

// key identifies what a requirement asks for, in any version of any contract.
func (r *Requirement) key() string {
	asked := *r
	asked.Name = ""
	sum := sha256.Sum256(text.JSON(asked))
	return hex.EncodeToString(sum[:8])
}
