package delivery

import "github.com/ledgerd/ledgerd/ledger"

// A shipment is a delivery.
type shipment struct {
	*model
	head    string
	commits set
	// follows reports whether what runs leads to the head.
	follows bool
}

// ships returns what a deployment of a commit to an environment ships.
func (m *model) ships(head, env string) *shipment {
	base, ran := m.running(env)
	all := m.upTo(head)
	s := &shipment{model: m, head: head, commits: all, follows: base != "" && all[base]}
	for _, name := range ran {
		if all[name] {
			s.commits = without(s.commits, m.upTo(name))
		}
	}
	s.commits[head] = true
	return s
}

// gaps returns the commits that are not covered.
func (s *shipment) gaps() set {
	gaps := make(set)
	for name := range s.commits {
		switch {
		case !s.model.commits[name].known:
			gaps[name] = true
		case name == s.head: // its state says what it lacks, but not what the others need of it
			if s.standing() < s.model.standing(name) {
				gaps[name] = true
			}
		case !s.isCovered(name):
			gaps[name] = true
		}
	}
	return gaps
}

// standing returns that of the head, if all tests apply that the delivery needs.
func (s *shipment) standing() ledger.State { return s.standingIf(s.head, s.touches) }

// isCovered reports whether a commit below the head is covered.
func (s *shipment) isCovered(name string) bool {
	if !s.rules.applies("review", func(path string) bool { return s.model.touches(name, path) }) {
		return true
	}
	votes := s.votes(name, true)
	counting, rejected := make(set), -1
	for _, v := range votes {
		switch {
		case v.isRejection:
			rejected = max(rejected, v.at)
		case v.counts:
			counting[v.by] = true
		}
	}

	covered := -1
	for head := range s.commits {
		for _, v := range s.votes(head, true) {
			if v.counts && v.covers[name] {
				counting[v.by] = true
				covered = max(covered, v.at)
			}
		}
	}

	isExcused := s.isExcused(name, "review")
	switch {
	case rejected > covered && !isExcused:
		return false
	case s.isClean(name):
		return true
	}
	need := s.rules.threshold
	if isExcused {
		need--
	}
	return s.differ(s.testers(s.head, s.touches, true), counting, need)
}

// isClean reports whether the mainline's key claims that a merge commit is one that changes nothing.
func (m *model) isClean(name string) bool {
	for _, c := range m.claimsOf(name) {
		if m.rules.byMerge && c.by == mainline && (c.kind == "merge" || c.kind == "update") {
			return true
		}
	}
	return false
}

// touches reports whether any commit of the delivery may change a path.
func (s *shipment) touches(path string) bool {
	if !s.follows {
		return true
	}
	for name := range s.commits {
		if s.model.touches(name, path) {
			return true
		}
	}
	return false
}

// deploymentCounts reports whether a deployment of a commit would count now.
func (m *model) deploymentCounts(s *statement) bool {
	if by := m.rolledBack(s.commit, s.env); by != "" && (s.verb == deploys || by == s.by) {
		return false
	}
	return m.standing(s.commit) == ledger.Promotable && len(m.ships(s.commit, s.env).gaps()) == 0
}
