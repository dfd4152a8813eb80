package delivery

import (
	"maps"
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A vote is the latest review of a commit by a person, its own or one that carries to it.
type vote struct {
	at          int // its place in what was said
	by          string
	isRejection bool
	// counts reports whether it counts for the commit. covers has the commits before this one which it covers then.
	counts bool
	covers set
}

// votes returns the reviews of a commit. In a delivery, a claim does not ask what the mainline meets.
func (m *model) votes(name string, delivered bool) map[string]vote {
	last := make(map[string]vote)
	consider := func(v vote) {
		if before, ok := last[v.by]; !ok || v.at > before.at {
			last[v.by] = v
		}
	}
	for _, at := range m.latest(name, "", approves, rejects) {
		consider(m.own(name, at))
	}
	for _, source := range m.sources(name) {
		for _, at := range m.latest(source, "", approves, rejects) {
			if v, ok := m.carried(name, source, at, delivered); ok {
				consider(v)
			}
		}
	}
	return last
}

// own returns a review of a commit itself.
func (m *model) own(name string, at int) vote {
	s := m.said[at]
	v := vote{at: at, by: s.by, isRejection: s.verb == rejects}
	v.counts = !v.isRejection && m.isByOther(name, s.by, set{name: true})
	if list, ok := m.since(s.on, name); ok && v.counts {
		v.counts = m.isByOther(name, s.by, list)
		v.covers = list
	}
	return v
}

// isByOther reports whether a person may review a commit, with others.
func (m *model) isByOther(name, person string, with set) bool {
	c := m.commits[name]
	switch {
	case m.rules.proven && !c.isProven:
		return false
	case m.rules.authors:
		return true
	}
	return c.isNamed && !m.wrote(person, with)
}

// sources returns the commits whose reviews may carry to a commit.
func (m *model) sources(name string) (list []string) {
	for other := range m.commits {
		isClaimed := slices.ContainsFunc(m.claimsOf(name), func(c *statement) bool { return c.of == other })
		if other != name && (isClaimed && m.rules.byMerge || m.rules.byTree && m.isCopy(name, other)) {
			list = append(list, other)
		}
	}
	return list
}

// isCopy reports whether two commits are known to have the same tree.
func (m *model) isCopy(name, other string) bool {
	a, b := m.commits[name], m.commits[other]
	return a.isProven && b.isProven && a.tree == b.tree
}

// claimsOf returns the claims about a commit that agree with its object: of each person and source, the latest.
func (m *model) claimsOf(name string) (list []*statement) {
	type key struct{ by, of string }
	last := make(map[key]*statement)
	for _, s := range m.said {
		if s.verb == claims && s.commit == name {
			last[key{s.by, s.of}] = s
		}
	}
	for _, s := range last {
		if s.counts {
			list = append(list, s)
		}
	}
	return list
}

// isValid reports whether a claim agrees with what is known now.
func (m *model) isValid(s *statement) bool {
	c, side := m.commits[s.commit], m.commits[s.on]
	if !c.isProven || !side.known {
		return false
	}

	others := slices.DeleteFunc(slices.Clone(c.parents), func(parent string) bool { return parent == s.on })
	follows := len(c.parents) == 2 && len(others) == 1
	switch s.kind {
	case "squash":
		return len(c.parents) == 1 && c.parents[0] == s.on
	case "merge":
		return follows && others[0] == s.of
	case "update":
		return follows && m.upTo(others[0])[s.of]
	}

	for c.known && len(c.parents) > 0 {
		if c.parents[0] == s.on {
			return true
		}
		c = m.commits[c.parents[0]]
	}
	return false
}

// carried returns what a review of a source is for a commit. It reports false if it does not carry.
func (m *model) carried(name, source string, at int, delivered bool) (v vote, carries bool) {
	s := m.said[at]
	v = vote{at: at, by: s.by, isRejection: s.verb == rejects, covers: make(set)}
	add := func(way vote, ok bool) {
		carries = carries || ok
		v.counts = v.counts || ok && way.counts
		if ok && way.counts {
			maps.Copy(v.covers, way.covers)
		}
	}
	if m.rules.byTree && m.isCopy(name, source) {
		add(m.byTree(name, source, s))
	}
	for _, c := range m.claimsOf(name) {
		if m.rules.byMerge && c.of == source && (c.by == mainline || c.by == s.by) && (delivered || m.holds(c)) {
			add(m.byClaim(c, s))
		}
	}
	return v, carries
}

// byTree returns what a review of a source with the same tree is for a commit.
func (m *model) byTree(name, source string, s *statement) (v vote, carries bool) {
	if s.verb == rejects {
		return v, true
	}
	reviewed, ok := m.since(s.on, source)
	if parents := m.commits[name].parents; !ok || len(parents) == 0 {
		return v, false
	}
	for _, parent := range m.commits[name].parents {
		if !m.upTo(parent)[s.on] {
			return v, false
		}
	}
	v.counts = m.isByOther(name, s.by, set{name: true}) && m.isByOther(source, s.by, reviewed)
	if list, ok := m.since(s.on, name); ok && m.isByOther(name, s.by, list) {
		v.covers = list
	}
	return v, true
}

// byClaim returns what a review of a source is for the commit of a claim.
func (m *model) byClaim(c, s *statement) (v vote, carries bool) {
	if s.verb == rejects {
		return v, true
	}
	reviewed, ok := m.since(s.on, c.of)
	if !ok || !m.upTo(c.on)[s.on] {
		return v, false
	}
	wrote := set{c.commit: true}
	switch {
	case c.kind == "rebase":
		list, ok := m.since(c.on, c.commit)
		if !ok {
			return v, false
		}
		wrote, v.covers = list, list
	case c.by == mainline && c.kind != "squash":
		wrote = nil // it does not matter who has pressed the button
	}
	v.counts = m.isByOther(c.commit, s.by, wrote) && m.isByOther(c.of, s.by, reviewed)
	return v, true
}

// holds reports whether the commit of the mainline of a claim meets what is asked of it, without exceptions.
func (m *model) holds(c *statement) bool {
	touches := func(path string) bool { return m.touches(c.on, path) }
	return !m.rules.applies("review", touches) || m.isReviewed(c.on, touches, false)
}

// isReviewed reports whether a commit meets the requirement of reviews by itself.
func (m *model) isReviewed(name string, touches func(string) bool, excusable bool) bool {
	counting, isRejected := make(set), false
	for _, v := range m.votes(name, false) {
		isRejected = isRejected || v.isRejection
		if v.counts {
			counting[v.by] = true
		}
	}
	need := m.rules.threshold
	isExcused := excusable && m.isExcused(name, "review")
	if isExcused {
		need--
	}
	return (!isRejected || isExcused) && m.differ(m.testers(name, touches, false), counting, need)
}

// testers returns, for each test that a commit needs, who has tested it. If it is lenient, tests that are not met need
// nobody: the state of the commit says that.
func (m *model) testers(name string, touches func(string) bool, lenient bool) (list []set) {
	for _, test := range m.rules.tests() {
		people, isMet := m.tested(name, test)
		switch {
		case !m.rules.applies(test, touches), m.isExcused(name, test), lenient && !isMet:
		default:
			list = append(list, people)
		}
	}
	return list
}

// tested returns who has tested a commit, and whether that meets the requirement.
func (m *model) tested(name, test string) (people set, isMet bool) {
	last := m.latest(name, test, passes, fails)
	for other := range m.commits {
		if !m.rules.testsByTree || other == name || !m.isCopy(name, other) {
			continue
		}
		for by, at := range m.latest(other, test, passes, fails) {
			if before, ok := last[by]; !ok || at > before {
				last[by] = at
			}
		}
	}
	people, isFailed := make(set), false
	for by, at := range last {
		if m.said[at].verb == fails {
			isFailed = true
		} else {
			people[by] = true
		}
	}
	return people, m.isExcused(name, test) || !isFailed && len(people) > 0
}

// differ reports whether enough people review who are needed for no test.
func (m *model) differ(testers []set, reviewers set, need int) bool {
	if !m.rules.distinct || len(testers) == 0 {
		return len(reviewers) >= need
	}
	for tester := range testers[0] {
		if m.differ(testers[1:], without(reviewers, set{tester: true}), need) {
			return true
		}
	}
	return false
}

// standing returns how far a commit has come by itself: to PROMOTABLE at most, and to VALIDATING at least.
func (m *model) standing(name string) ledger.State {
	own := func(path string) bool { return m.touches(name, path) }
	return m.standingIf(name, own, own)
}

// standingIf is like standing, if reviews apply to what the commit itself changes, and tests to what others do, too.
func (m *model) standingIf(name string, own, touches func(string) bool) ledger.State {
	for _, test := range m.rules.tests() {
		if _, isMet := m.tested(name, test); m.rules.applies(test, touches) && !isMet {
			return ledger.Validating
		}
	}
	if m.rules.applies("review", own) && !m.isReviewed(name, touches, true) {
		return ledger.Attested
	}
	return ledger.Promotable
}
