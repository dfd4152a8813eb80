package rederive

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// people finds out which signers are one person: those with a common DN, or a common key.
type people struct {
	nodes  map[string]int // DNs and keys
	parent []int          // of the nodes; roots are their own
	// named has, by folded name, who has this name.
	named map[string][]named
}

// A named is a DN that has a name, and its node. Others that fold to the same text have this node,
// too, and names of their own.
type named struct {
	dn   identity.DN
	node int
}

func newPeople() *people {
	return &people{nodes: make(map[string]int), named: make(map[string][]named)}
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
	signer := p.node(dnNode(dn))
	if key == "" { // events of earlier versions have none
		return
	}
	p.parent[p.root(p.node(keyNode(key)))] = p.root(signer)
}

// forget notes that a DN no longer has some folded names.
func (p *people) forget(dn identity.DN, names []string) {
	for _, name := range names {
		p.named[name] = slices.DeleteFunc(p.named[name], func(other named) bool { return other.dn == dn })
	}
}

// name notes names of a DN, in addition to its CN.
func (p *people) name(dn identity.DN, names ...string) {
	n := named{dn, p.node(dnNode(dn))}
	for _, name := range append([]string{dn.CN}, names...) {
		if name = identity.FoldName(name); name != "" && !slices.Contains(p.named[name], n) {
			p.named[name] = append(p.named[name], n)
		}
	}
}

// of returns the person of a DN.
func (p *people) of(dn identity.DN) int64 { return int64(p.root(p.node(dnNode(dn)))) + 1 }

// authors returns the people who have the names of authors, or their keys, and the names and
// keys that anybody has.
func (p *people) authors(authors []ledger.Author, keys []string) (list []int64, known []string) {
	for _, name := range identity.AuthorNames(authors) {
		for _, n := range p.named[name] {
			list, known = append(list, int64(p.root(n.node))+1), append(known, name)
		}
	}
	for _, key := range keys {
		if n, ok := p.nodes[keyNode(key)]; ok {
			list, known = append(list, int64(p.root(n))+1), append(known, key)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), known
}
