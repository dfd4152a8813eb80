package identity

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
