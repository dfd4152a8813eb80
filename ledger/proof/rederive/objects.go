package rederive

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/ancestry"
	"github.com/ledgerd/ledgerd/ledger/gitobject"
	"github.com/ledgerd/ledgerd/ledger/lineage"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// NeededObjects returns the commits whose objects the ledger knows, if states may depend on what they say of the
// history. AddObject is to be called for those that can be read.
func (r *Replay) NeededObjects() []string {
	if !r.objects.inUse {
		return nil
	}
	return slices.Sorted(maps.Keys(r.objects.known))
}

// HasClone notes that objects were read from a clone.
func (r *Replay) HasClone() { r.objects.cloned = true }

// AddObject adds the object of a commit. The error says that it is not that of the commit.
func (r *Replay) AddObject(o lineage.Object) error {
	c, err := gitobject.Parse(o.Commit, o.Object)
	if err != nil {
		return fmt.Errorf("object of %s: %w", ledger.Short(o.Commit), err)
	}
	var keys []string
	if key := ancestry.SigningKey(c); key != "" {
		keys = []string{key}
	}
	read := &object{wrote: ancestry.Read(c, keys...)}
	if read.Parents, read.At, err = gitobject.Lineage(o.Commit, o.Object); err != nil {
		return fmt.Errorf("object of %s: %w", ledger.Short(o.Commit), err)
	}
	r.objects.read[o.Commit] = read
	return nil
}

// A view is what the log has before an event. It notes what an answer depends on.
type view struct {
	*Replay
	moment
	basis
}

func (r *Replay) at(m moment) *view {
	return &view{Replay: r, moment: m, basis: basis{to: math.MaxInt64}}
}

// hasOwn reports whether an event of the commit itself was before.
func (v *view) hasOwn(m moment) bool {
	if m.index >= v.index {
		v.to = min(v.to, m.index)
		return false
	}
	v.from = max(v.from, m.index)
	return true
}

// has reports whether an event was before from which states of other commits follow.
func (v *view) has(m moment) bool {
	if !v.hasOwn(m) {
		return false
	}
	v.changed = max(v.changed, m.at)
	return true
}

// object returns the object of a commit, or nil if the ledger did not know it, or if it was not read.
func (v *view) object(sha string) *object {
	known, ok := v.objects.known[sha]
	if !ok || !v.has(known) {
		return nil
	}
	v.objectAt = max(v.objectAt, known.index)
	o := v.objects.read[sha]
	v.lacks = v.lacks || o == nil
	return o
}

func (v *view) node(sha string) (n lineage.Node, known bool, err error) {
	o := v.object(sha)
	if o == nil {
		return n, false, nil
	}
	return o.Node, true, nil
}

// IsKnown implements ancestry.History.
func (v *view) IsKnown(sha string) (bool, error) { return v.object(sha) != nil, nil }

// Commit implements ancestry.History.
func (v *view) Commit(sha string) (c ancestry.Commit, known bool, err error) {
	o := v.object(sha)
	if o == nil {
		return c, false, nil
	}
	return o.wrote, true, nil
}

// Between implements ancestry.History.
func (v *view) Between(base, head string) (list []ancestry.Commit, known bool, err error) {
	commits, known, err := lineage.Between(v.node, base, head)
	if err != nil || !known {
		return nil, false, err
	}
	for _, sha := range commits {
		list = append(list, v.objects.read[sha].wrote)
	}
	return list, true, nil
}

// IsAncestor implements ancestry.History.
func (v *view) IsAncestor(a, b string) (is, sure bool, err error) {
	return lineage.IsAncestor(v.node, a, b)
}

// IsFirstParent implements ancestry.History.
func (v *view) IsFirstParent(a, b string, n int) (bool, error) {
	return lineage.IsFirstParent(v.node, a, b, n)
}

// whyLacking says why a state is not derived again that depends on something whose objects were not read.
func (v *view) whyLacking(what string) string {
	if !v.objects.cloned {
		return what + ", whose objects are not read (run it in a clone of the repo)"
	}
	return what + ", and the clone lacks objects of them (fetch all branches and pull requests)"
}

// contract returns the contract in a view, if it is known.
func (v *view) contract() (c policy.Contract, ok bool) {
	for _, version := range v.versions {
		if !v.hasOwn(version.moment) {
			break
		}
	}
	return v.contractBefore(v.index)
}

// contractBefore returns the contract that was in effect before an event, if it is known.
func (r *Replay) contractBefore(index int64) (c policy.Contract, ok bool) {
	number := 0
	for _, v := range r.versions {
		if v.index < index {
			number = v.number
		}
	}
	r.isFirst = r.isFirst || number == 1
	c, ok = r.contracts[number]
	return c, ok
}
