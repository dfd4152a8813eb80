package delivery

import (
	"maps"
	"slices"
)

// A model says what a deployment ships and which of it is covered, by the rules of docs/policy.md and docs/evidence.md
// alone. For each question, it walks the whole history.
type model struct {
	rules   rules
	commits map[string]*commit
	// said has all statements, in the order in which they were recorded.
	said []*statement
}

// A set has names: of commits or people.
type set map[string]bool

// A commit has a name. What is not known of it, no rule may rely on.
type commit struct {
	name, author string
	parents      []string
	tree         int
	known        bool     // the ledger knows its parents and its author, by its object
	registered   bool     // it has a state, and may be deployed
	isNamed      bool     // it was registered with its author
	isProven     bool     // it was registered with its object
	paths        []string // that it changes, if its registration says so
	hasPaths     bool
}

// A verb is what a statement does.
type verb string

const (
	passes    verb = "passes"   // a test of the commit
	fails     verb = "fails"    // the same
	approves  verb = "approves" // a review, since a base or of the commit alone
	rejects   verb = "rejects"
	claims    verb = "claims" // that the commit is a clean merge
	excuses   verb = "excuses"
	deploys   verb = "deploys"
	redeploys verb = "redeploys" // what was rolled back
	rollsBack verb = "rolls back"
	bases     verb = "bases" // says that the commit runs
	compares  verb = "compares"
)

// A statement is what somebody has signed about a commit.
type statement struct {
	by     string
	verb   verb
	commit string
	on     string // the base of a review or a change record, or the commit of the mainline of a claim
	of     string // the source of a claim, or the requirement that a test or an exception is about
	kind   string // of a claim
	env    string
	paths  []string // in which the commit differs from another one, on

	// counts reports whether a claim agrees with the objects that were known when it was recorded, or whether a deployment
	// counted then.
	counts bool
}

// latest returns the last statement of each person about a commit, with any of the verbs, by its place.
func (m *model) latest(commit, of string, verbs ...verb) map[string]int {
	last := make(map[string]int)
	for at, s := range m.said {
		if s.commit == commit && s.of == of && slices.Contains(verbs, s.verb) {
			last[s.by] = at
		}
	}
	return last
}

// upTo returns a commit and all that is known to lead to it.
func (m *model) upTo(name string) set {
	s := make(set)
	m.walk(name, s)
	return s
}

func (m *model) walk(name string, s set) {
	if s[name] {
		return
	}
	s[name] = true
	if c := m.commits[name]; c.known {
		for _, parent := range c.parents {
			m.walk(parent, s)
		}
	}
}

// since returns what leads to a commit and not to a base. It reports false if the base is no ancestor of the commit, or
// if an object between is not known.
func (m *model) since(base, head string) (list set, ok bool) {
	list = m.upTo(head)
	ok = base != "" && base != head && list[base]
	if ok {
		list = without(list, m.upTo(base))
		for name := range list {
			ok = ok && m.commits[name].known
		}
	}
	return list, ok
}

func without(a, b set) set {
	rest := maps.Clone(a)
	maps.DeleteFunc(rest, func(name string, _ bool) bool { return b[name] })
	return rest
}

// wrote reports whether a person has written any of some commits.
func (m *model) wrote(person string, names set) bool {
	for name := range names {
		if m.commits[name].author == person {
			return true
		}
	}
	return false
}

// deployed returns what runs or ran in an environment by deployments that count and were not rolled back, in order.
func (m *model) deployed(env string) (order []string) {
	move := func(name string, isBack bool) {
		order = slices.DeleteFunc(order, func(other string) bool { return other == name })
		if !isBack && name != "" {
			order = append(order, name)
		}
	}
	for _, s := range m.said {
		switch {
		case s.env != env:
		case s.verb == rollsBack:
			move(s.commit, true)
			move(s.on, false)
		case s.counts:
			move(s.commit, false)
		}
	}
	return order
}

// running returns what runs in an environment, or "", and all that ran there, with what runs: what was deployed and not
// rolled back, and the newest baseline.
func (m *model) running(env string) (base string, ran []string) {
	for _, s := range m.said {
		if s.env == env && s.verb == bases {
			base = s.commit
		}
	}
	if base != "" {
		ran = []string{base}
	}
	for _, name := range m.deployed(env) {
		base = name
		ran = append(ran, name)
	}
	return base, ran
}

// touches reports whether a commit may change a path.
func (m *model) touches(name, path string) bool {
	if m.rules.signed {
		records := m.records(name)
		return len(records) == 0 || changes(records, path)
	}
	c := m.commits[name]
	return !c.hasPaths || slices.Contains(c.paths, path)
}

// records returns the change records of a commit, the newest first: of each person and base, the latest.
func (m *model) records(name string) (list []*statement) {
	type key struct{ by, on string }
	seen := make(map[key]bool)
	for _, s := range slices.Backward(m.said) {
		if k := (key{s.by, s.on}); s.verb == compares && s.commit == name && !seen[k] {
			seen[k] = true
			list = append(list, s)
		}
	}
	return list
}

// changes reports whether any of some change records has a path.
func changes(records []*statement, path string) bool {
	return slices.ContainsFunc(records, func(s *statement) bool { return slices.Contains(s.paths, path) })
}

// isExcused reports whether an exception stands in for a requirement.
func (m *model) isExcused(name, requirement string) bool {
	return slices.ContainsFunc(m.said, func(s *statement) bool {
		return s.verb == excuses && s.commit == name && s.of == requirement && s.by == boss
	})
}

// rolledBack returns who has rolled a commit back from an environment since it was deployed last, or "".
func (m *model) rolledBack(name, env string) (by string) {
	for _, s := range m.said {
		switch {
		case s.env != env || s.commit != name:
		case s.verb == rollsBack:
			by = s.by
		case s.counts:
			by = ""
		}
	}
	return by
}
