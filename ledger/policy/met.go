package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// forever is until when a requirement is met whose evidence does not expire, or that does not apply.
const forever = ledger.Time(math.MaxInt64)

// maxAges limits how many times are tried, at which evidence expires.
const maxAges = 20

// Met says which requirements a commit meets by its evidence, without exceptions, and until when. It does not depend on
// the present time.
func (c Contract) Met(f Facts) Met {
	f.Exceptions = nil
	met := make(Met, len(c.Requirements))
	now := ledger.Time(0)
	for range maxAges {
		at := f
		v := c.evaluate(&at, now)
		for i := range v.decisions {
			d, key := &v.decisions[i], c.Requirements[i].key()
			switch {
			case !d.applies:
				met[key] = forever
			case d.met && (now == 0 || met[key] == now):
				met[key] = cmp.Or(d.expires, forever)
			}
		}
		if now = met.after(now); now == forever {
			break
		}
	}
	return met
}

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

// after returns the first time after another one at which a requirement is no longer met.
func (m Met) after(now ledger.Time) ledger.Time {
	next := forever
	for _, until := range m {
		if until > now {
			next = min(next, until)
		}
	}
	return next
}

// lacks returns a requirement that a commit did not meet at a time, of the given one and those up to its state that cover
// changes. It is nil if it met all.
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
