package identity

import "crypto/sha256"

// People reports which signers are one person. A signer is a DN and a key. Two signers are
// one person if they have the same key, or DNs that fold to the same text (see
// [DN.Fold]), or if other signers connect them in this way.
//
// Add the registered keys of an org, revoked ones too, and the signers of its
// attestations. The zero value has nobody. Methods other than Add may be called
// concurrently.
type People struct {
	// names and keys map to a node: an index of parents. DNs are mapped as added, to save
	// folding them again, and folded.
	names map[DN]int
	keys  map[[sha256.Size]byte]int
	// parents and sizes are a union-find forest with one tree per person. A root is its
	// own parent.
	parents, sizes []int
}

// Add adds a signer. It takes nearly constant time. It may join two persons, so that
// one of the two numbers that Of has returned for them is no longer in use.
//
// isJoined reports whether the key was known, of another person.
func (p *People) Add(dn DN, key [sha256.Size]byte) (isJoined bool) {
	named := p.nodeFor(dn)
	keyed, isKnown := p.keys[key]
	if !isKnown {
		keyed = p.newNode()
		p.keys[key] = keyed
	}
	return p.join(named, keyed) && isKnown
}

// nodeFor returns the node of a DN, and adds it if it is new.
func (p *People) nodeFor(dn DN) int {
	if p.names == nil {
		p.names, p.keys = make(map[DN]int), make(map[[sha256.Size]byte]int)
	}
	node, ok := p.nodeOf(dn)
	if !ok {
		node = p.newNode()
		p.names[dn.folded()] = node
	}
	p.names[dn] = node
	return node
}

// Of returns the number of a signer's person. Two signers have the same number if and
// only if they are one person. It reports false for a signer that was not added, unless
// the others show that DN and key belong to one person.
func (p *People) Of(dn DN, key [sha256.Size]byte) (person int, ok bool) {
	named, ok := p.nodeOf(dn)
	if !ok {
		return 0, false
	}
	keyed, ok := p.keys[key]
	if !ok {
		return 0, false
	}
	person = p.root(named)
	return person, person == p.root(keyed)
}

func (p *People) nodeOf(dn DN) (node int, ok bool) {
	if node, ok = p.names[dn]; !ok {
		node, ok = p.names[dn.folded()]
	}
	return node, ok
}

func (p *People) newNode() int {
	node := len(p.parents)
	p.parents, p.sizes = append(p.parents, node), append(p.sizes, 1)
	return node
}

// root returns the root of a node's tree. It writes nothing, so that Of may be called
// concurrently; as join adds the smaller tree to the larger one, trees are at most
// log2(n) high.
func (p *People) root(node int) int {
	for p.parents[node] != node {
		node = p.parents[node]
	}
	return node
}

// join makes two trees one. It reports false if they were.
func (p *People) join(a, b int) bool {
	a, b = p.root(a), p.root(b)
	if a == b {
		return false
	}
	if p.sizes[a] < p.sizes[b] {
		a, b = b, a
	}
	p.parents[b] = a
	p.sizes[a] += p.sizes[b]
	return true
}

// A NamedSigner has what shows who else is the same individual as a signer.
type NamedSigner struct {
	// Person is that of the signer, as in People.
	Person int64
	// Names are the folded common name, e-mail addresses and logins.
	Names []string
	// Distinct reports whether the person is somebody else than all others with these names.
	Distinct bool
}

// Individuals returns, by person, the individual: people with a common name are one, and so are
// those whom others connect in this way. Its number is the smallest of its people. A person of
// whom any signer is Distinct is an individual alone.
func Individuals(signers []NamedSigner) map[int64]int64 {
	distinct, parents := make(map[int64]bool), make(map[int64]int64)
	for _, s := range signers {
		parents[s.Person] = s.Person
		distinct[s.Person] = distinct[s.Person] || s.Distinct
	}
	root := func(person int64) int64 {
		for parents[person] != person {
			person = parents[person]
		}
		return person
	}

	named := make(map[string]int64) // the individual that has a name
	for _, s := range signers {
		if distinct[s.Person] {
			continue
		}
		for _, name := range s.Names {
			a, b := root(s.Person), root(s.Person)
			if other, ok := named[name]; ok {
				b = root(other)
			}
			parents[max(a, b)] = min(a, b)
			named[name] = min(a, b)
		}
	}
	for person := range parents {
		parents[person] = root(person)
	}
	return parents
}
