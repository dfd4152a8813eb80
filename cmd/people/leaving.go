package people

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
	"github.com/ledgerd/ledgerd/ledger/member"
	"github.com/ledgerd/ledgerd/ledger/passkey"
)

// A person is what an org has of those who count once: the JSON output of person show.
type person struct {
	Members    []member.Member     `json:"members"`
	Identities []identity.Identity `json:"identities"`
	Passkeys   []passkey.Passkey   `json:"passkeys"`
	SignIns    []ledger.Token      `json:"sign_ins"`
	Tokens     []ledger.Token      `json:"tokens"`
	// Signed has the newest attestations of each repo.
	Signed []ledger.AttestationRecord `json:"signed"`
	// same are the IDs of identities and members who are one person, and not only one individual.
	same map[string]bool
}

// A signer is an identity or a member, with what shows who else is the same.
type signer struct {
	id     string
	dn     identity.DN
	key    [sha256.Size]byte
	names  []string
	person int
	who    identity.NamedSigner
}

// personNamed returns the person with a name: the ID of a member or an identity, a DN, a common name,
// an e-mail address or a login. It has nothing if nobody has the name.
func personNamed(ctx context.Context, c *client.Client, org, name string) (person, error) {
	var p person
	members, err := client.Collect(c.Members(ctx, org), 0)
	if err != nil {
		return p, err
	}
	identities, err := client.Collect(c.Identities(ctx, org), 0)
	if err != nil {
		return p, err
	}
	signers, err := signersOf(members, identities)
	if err != nil {
		return p, err
	}

	is := selected(signers, name)
	p.Members = slices.DeleteFunc(members, func(m member.Member) bool { return !is[m.ID].individual })
	p.Identities = slices.DeleteFunc(identities, func(i identity.Identity) bool { return !is[i.ID].individual })
	p.same = make(map[string]bool)
	for id, s := range is {
		p.same[id] = s.person
	}
	return p, p.readSessions(ctx, c, org)
}

// signersOf returns the signers of an org, except roots, whose certificates are not known.
func signersOf(members []member.Member, identities []identity.Identity) ([]signer, error) {
	var list []signer
	add := func(id, dn string, key [sha256.Size]byte, names []string, distinct bool) error {
		parsed, err := identity.ParseDN(dn)
		s := signer{id: id, dn: parsed, key: key, names: append(names, id, dn)}
		s.who.Distinct = distinct
		for _, name := range append([]string{parsed.CN}, names...) {
			if name = identity.FoldName(name); name != "" {
				s.who.Names = append(s.who.Names, name)
			}
		}
		list = append(list, s)
		return err
	}
	for _, m := range members {
		if err := add(m.ID, m.DN, sha256.Sum256([]byte(m.ID)), nil, m.Distinct); err != nil {
			return nil, err
		}
	}
	for _, i := range identities {
		if i.Kind == identity.RootIdentity {
			continue
		}
		if err := add(i.ID, i.DN, sha256.Sum256([]byte(i.Fingerprint)), i.AuthorNames(), i.Distinct); err != nil {
			return nil, err
		}
	}

	var people identity.People
	for _, s := range list {
		people.Add(s.dn, s.key)
	}
	for n := range list {
		list[n].person, _ = people.Of(list[n].dn, list[n].key)
		list[n].who.Person = int64(list[n].person) + 1
	}
	return list, nil
}

// A selection reports whether a signer is the person with a name, and whether it is one who counts
// once with them.
type selection struct{ person, individual bool }

// selected selects signers by a name.
func selected(signers []signer, name string) map[string]selection {
	var named []identity.NamedSigner
	for _, s := range signers {
		named = append(named, s.who)
	}
	individuals := identity.Individuals(named)
	people, chosen := make(map[int]bool), make(map[int64]bool)
	for _, s := range signers {
		if slices.Contains(s.names, name) || slices.Contains(s.who.Names, identity.FoldName(name)) {
			people[s.person], chosen[individuals[s.who.Person]] = true, true
		}
	}
	is := make(map[string]selection)
	for _, s := range signers {
		is[s.id] = selection{people[s.person], chosen[individuals[s.who.Person]]}
	}
	return is
}

// readSessions reads the sign-ins, tokens and passkeys of the members.
func (p *person) readSessions(ctx context.Context, c *client.Client, org string) error {
	if len(p.Members) == 0 {
		return nil
	}
	for _, m := range p.Members {
		passkeys, err := client.Collect(c.Passkeys(ctx, org, m.ID), 0)
		if err != nil {
			return err
		}
		signIns, err := client.Collect(c.SignIns(ctx, org, m.ID), 0)
		if err != nil {
			return err
		}

		p.Passkeys, p.SignIns = append(p.Passkeys, passkeys...), append(p.SignIns, signIns...)
	}
	for t, err := range c.Tokens(ctx, org) {
		if err != nil {
			return err
		}
		isOwn := func(m member.Member) bool { return m.ID == t.Member }
		if t.RevokedAt == 0 && slices.ContainsFunc(p.Members, isOwn) {
			p.Tokens = append(p.Tokens, t)
		}
	}
	return nil
}

// signedPerRepo is how many attestations of a name person show lists for each repo.
const signedPerRepo = 5

// readSigned reads the newest attestations of the person.
func (p *person) readSigned(ctx context.Context, c *client.Client, org string) error {
	var dns []string
	for _, m := range p.Members {
		dns = append(dns, m.DN)
	}
	for _, i := range p.Identities {
		dns = append(dns, i.DN)
	}
	slices.Sort(dns)

	for r, err := range c.Repos(ctx, org) {
		if err != nil {
			return err
		}
		for _, dn := range slices.Compact(dns) {
			list, err := client.Collect(c.Attestations(ctx, org, r.Name, client.AttestationFilter{Identity: dn}),
				signedPerRepo)
			if err != nil {
				return err
			}
			p.Signed = append(p.Signed, list...)
		}
	}
	slices.SortStableFunc(p.Signed, func(a, b ledger.AttestationRecord) int { return strings.Compare(b.ID, a.ID) })
	return nil
}

// keys returns the identities that are not revoked: those that end with the membership, and those
// that only have a name in common.
func (p *person) keys() (ending, others []identity.Identity) {
	for _, i := range p.Identities {
		switch {
		case i.RevokedAt != 0:
		case p.same[i.ID]:
			ending = append(ending, i)
		default:
			others = append(others, i)
		}
	}
	return ending, others
}
