package identity

import (
	"encoding/hex"
	"fmt"
	"iter"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// Signers finds out, from the events of an org in the order of its log, which signers are one person,
// as in People, which names they have, and which people are one individual.
type Signers struct {
	// IsJoined reports whether people may have become one person or individual since it was last set
	// to false.
	IsJoined bool

	people People
	// named has, by folded name, who has this name.
	named map[string][]namedDN
	// distinct has the DNs of which an administrator says that they are nobody else's.
	distinct map[DN]bool
	// individuals is by person. It is nil after a change.
	individuals map[int64]int64
	identities  map[string]ledger.IdentityEvent // the last of each
	namesakes   map[string][]string             // the IDs of identities by DN
}

// A namedDN is a DN that has a name, and its node. Others that fold to the same text have this node,
// too, and names of their own.
type namedDN struct {
	dn   DN
	node int
}

// NewSigners returns the signers of an org without any.
func NewSigners() *Signers {
	return &Signers{
		named: make(map[string][]namedDN), distinct: make(map[DN]bool),
		identities: make(map[string]ledger.IdentityEvent), namesakes: make(map[string][]string),
	}
}

// Identity returns the last event of an identity.
func (s *Signers) Identity(id string) (e ledger.IdentityEvent, ok bool) {
	e, ok = s.identities[id]
	return e, ok
}

// Emails returns the e-mail addresses of the signer of an attestation by an identity, as the events so far
// say, given those in the certificate. It reports false if no event is about the identity.
func (s *Signers) Emails(id string, certified []string) (emails []string, ok bool) {
	e, ok := s.identities[id]
	if !ok || e.Kind != string(KeyIdentity) {
		return certified, ok
	}
	return SignerEmails(Identity{Email: e.Email, Emails: e.Emails}.Addresses(), certified), true
}

// Trust adds an event of an identity or a signer.
func (s *Signers) Trust(e ledger.IdentityEvent) error {
	if e.Kind == ledger.KindSigner {
		dn, err := ParseDN(e.DN)
		if err != nil {
			return fmt.Errorf("signer %s: %w", e.IdentityID, err)
		}
		s.Name(dn)
		s.distinct[dn] = e.Distinct
		return nil
	}
	last, isKnown := s.identities[e.IdentityID]
	before, after := authorNames(last), authorNames(e)
	s.identities[e.IdentityID] = e
	if !isKnown {
		s.namesakes[e.DN] = append(s.namesakes[e.DN], e.IdentityID)
	}
	isKey := e.Kind == string(KeyIdentity)
	if !isKey && len(before) == 0 && len(after) == 0 {
		return nil // its signers are named when they sign
	}

	dn, err := ParseDN(e.DN)
	if err != nil {
		return fmt.Errorf("identity %s: %w", e.IdentityID, err)
	}
	if !slices.Equal(before, after) {
		s.forget(dn, Dropped(dn, before, s.namesOf(e.DN)))
	}
	s.Name(dn, after...)
	if isKey {
		s.Sign(dn, e.Key)
	}
	return nil
}

// namesOf returns the names that the identities with a DN have.
func (s *Signers) namesOf(dn string) (names []string) {
	for _, id := range s.namesakes[dn] {
		names = append(names, authorNames(s.identities[id])...)
	}
	return names
}

// authorNames returns the names by which commits may name the signer of an identity.
func authorNames(e ledger.IdentityEvent) []string {
	return Identity{Email: e.Email, Emails: e.Emails, Logins: e.Logins}.AuthorNames()
}

// Sign notes that a DN has used a key, or may use it. The key is a hex SHA-256; it may be empty, as in
// events of earlier versions.
func (s *Signers) Sign(dn DN, key string) {
	s.individuals = nil
	var digest [32]byte
	if n, err := hex.Decode(digest[:], []byte(key)[:min(len(key), 2*len(digest))]); err != nil || n < len(digest) {
		s.people.nodeFor(dn)
		return
	}
	s.IsJoined = s.people.Add(dn, digest) || s.IsJoined
}

// forget notes that a DN no longer has some folded names.
func (s *Signers) forget(dn DN, names []string) {
	s.individuals = nil
	for _, name := range names {
		s.named[name] = slices.DeleteFunc(s.named[name], func(other namedDN) bool { return other.dn == dn })
	}
}

// Name notes names of a DN, in addition to its CN.
func (s *Signers) Name(dn DN, names ...string) {
	s.individuals = nil
	n := namedDN{dn, s.people.nodeFor(dn)}
	for _, name := range append([]string{dn.CN}, names...) {
		if name = FoldName(name); name != "" && !slices.Contains(s.named[name], n) {
			s.IsJoined = s.IsJoined || len(s.named[name]) > 0
			s.named[name] = append(s.named[name], n)
		}
	}
}

// Names returns the folded names, each with a DN that has it.
func (s *Signers) Names() iter.Seq2[string, DN] {
	return func(yield func(string, DN) bool) {
		for name, list := range s.named {
			for _, n := range list {
				if !yield(name, n.dn) {
					return
				}
			}
		}
	}
}

// Person returns the person of a DN, which is greater than 0.
func (s *Signers) Person(dn DN) int64 { return s.person(s.people.nodeFor(dn)) }

// PersonOfKey returns the person of a key, and whether anybody has used it or may use it.
func (s *Signers) PersonOfKey(digest [32]byte) (person int64, ok bool) {
	n, ok := s.people.keys[digest]
	if !ok {
		return 0, false
	}
	return s.person(n), true
}

func (s *Signers) person(node int) int64 { return int64(s.people.root(node)) + 1 }

// Individual returns the individual of a person.
func (s *Signers) Individual(person int64) int64 {
	if s.individuals == nil {
		s.individuals = s.group()
	}
	return s.individuals[person]
}

// group returns the individuals by person.
func (s *Signers) group() map[int64]int64 {
	var signers []NamedSigner
	for n := range s.people.parents {
		signers = append(signers, NamedSigner{Person: s.person(n)})
	}
	for name, list := range s.named {
		for _, n := range list {
			signers = append(signers, NamedSigner{
				Person: s.person(n.node), Names: []string{name}, Distinct: s.distinct[n.dn],
			})
		}
	}
	return Individuals(signers)
}

// Authors returns the individuals who have the names of authors, or their keys, and the names and
// keys that anybody has.
func (s *Signers) Authors(authors []ledger.Author, keys []string) (list []int64, known []string) {
	for _, name := range AuthorNames(authors) {
		for _, n := range s.named[name] {
			list, known = append(list, s.Individual(s.person(n.node))), append(known, name)
		}
	}
	for _, key := range keys {
		var digest [32]byte
		if n, err := hex.Decode(digest[:], []byte(key)); err != nil || n < len(digest) {
			continue
		}
		if person, ok := s.PersonOfKey(digest); ok {
			list, known = append(list, s.Individual(person)), append(known, key)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), known
}
