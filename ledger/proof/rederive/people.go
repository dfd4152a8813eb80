package rederive

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/policy"
)

// people finds out which signers are one person, those with a common DN or a common key, and which
// people are one individual.
type people struct {
	nodes  map[string]int // DNs and keys
	parent []int          // of the nodes; roots are their own
	// named has, by folded name, who has this name.
	named map[string][]named
	// distinct has the DNs of which an administrator says that they are nobody else's.
	distinct map[identity.DN]bool
	// individuals is by person. It is nil after a change.
	individuals map[int64]int64
	// isJoined reports whether people may have become one person or individual.
	isJoined bool
}

// A named is a DN that has a name, and its node. Others that fold to the same text have this node,
// too, and names of their own.
type named struct {
	dn   identity.DN
	node int
}

func newPeople() *people {
	return &people{nodes: make(map[string]int), named: make(map[string][]named), distinct: make(map[identity.DN]bool)}
}

// Keys of nodes: DNs fold, and keys are hex SHA-256.
func dnNode(dn identity.DN) string    { return "dn:" + dn.Fold() }
func keyNode(hexDigest string) string { return "key:" + hexDigest }

// node returns the number of a node, and adds it if it is new.
func (p *people) node(key string) int {
	n, ok := p.nodes[key]
	if !ok {
		n = len(p.parent)
		p.nodes[key], p.parent = n, append(p.parent, n)
	}
	return n
}

// root returns the node that stands for the person of a node.
func (p *people) root(n int) int {
	for p.parent[n] != n {
		p.parent[n] = p.parent[p.parent[n]]
		n = p.parent[n]
	}
	return n
}

// sign notes that a DN has used a key, or may use it.
func (p *people) sign(dn identity.DN, key string) {
	p.individuals = nil
	signer := p.node(dnNode(dn))
	if key == "" { // events of earlier versions have none
		return
	}
	_, isKnown := p.nodes[keyNode(key)]
	owner := p.root(p.node(keyNode(key)))
	p.isJoined = p.isJoined || isKnown && owner != p.root(signer)
	p.parent[owner] = p.root(signer)
}

// forget notes that a DN no longer has some folded names.
func (p *people) forget(dn identity.DN, names []string) {
	p.individuals = nil
	for _, name := range names {
		p.named[name] = slices.DeleteFunc(p.named[name], func(other named) bool { return other.dn == dn })
	}
}

// name notes names of a DN, in addition to its CN.
func (p *people) name(dn identity.DN, names ...string) {
	p.individuals = nil
	n := named{dn, p.node(dnNode(dn))}
	for _, name := range append([]string{dn.CN}, names...) {
		if name = identity.FoldName(name); name != "" && !slices.Contains(p.named[name], n) {
			p.isJoined = p.isJoined || len(p.named[name]) > 0
			p.named[name] = append(p.named[name], n)
		}
	}
}

// of returns the person of a DN.
func (p *people) of(dn identity.DN) int64 { return int64(p.root(p.node(dnNode(dn)))) + 1 }

// setDistinct notes whether a DN is another person's than all others with the same names.
func (p *people) setDistinct(dn identity.DN, distinct bool) {
	p.name(dn)
	p.distinct[dn] = distinct
}

// individual returns the individual of a person.
func (p *people) individual(person int64) int64 {
	if p.individuals == nil {
		p.individuals = p.group()
	}
	return p.individuals[person]
}

// group returns the individuals by person.
func (p *people) group() map[int64]int64 {
	var signers []identity.NamedSigner
	for _, n := range p.nodes {
		signers = append(signers, identity.NamedSigner{Person: int64(p.root(n)) + 1})
	}
	for name, list := range p.named {
		for _, n := range list {
			signers = append(signers, identity.NamedSigner{
				Person: int64(p.root(n.node)) + 1, Names: []string{name}, Distinct: p.distinct[n.dn],
			})
		}
	}
	return identity.Individuals(signers)
}

// who sets the person and the individual of evidence by its signer.
func (p *people) who(e *policy.Evidence) {
	e.Person = p.of(e.Signer)
	e.Individual = p.individual(e.Person)
}

// authors returns the individuals who have the names of authors, or their keys, and the names and
// keys that anybody has.
func (p *people) authors(authors []ledger.Author, keys []string) (list []int64, known []string) {
	for _, name := range identity.AuthorNames(authors) {
		for _, n := range p.named[name] {
			list, known = append(list, p.individual(int64(p.root(n.node))+1)), append(known, name)
		}
	}
	for _, key := range keys {
		if n, ok := p.nodes[keyNode(key)]; ok {
			list, known = append(list, p.individual(int64(p.root(n))+1)), append(known, key)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), known
}
