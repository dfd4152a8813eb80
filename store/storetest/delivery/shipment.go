package delivery

import (
	"slices"

	"github.com/ledgerd/ledgerd/ledger"
)

// A shipment is a delivery.
type shipment struct {
	*model
	head    string
	env     string
	commits set
	// follows reports whether what runs leads to the head.
	follows bool
}

// ships returns what a deployment of a commit to an environment ships.
func (m *model) ships(head, env string) *shipment {
	base, ran := m.running(env)
	all := m.upTo(head)
	s := &shipment{model: m, head: head, env: env, commits: all, follows: base != "" && all[base]}
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
func (s *shipment) standing() ledger.State {
	own := func(path string) bool { return s.touchesBy(s.head, path) }
	return s.standingIf(s.head, own, s.touches)
}

// isCovered reports whether a commit below the head is covered.
func (s *shipment) isCovered(name string) bool {
	if !s.rules.applies("review", func(path string) bool { return s.touchesBy(name, path) }) {
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
	if s.rules.signed {
		heads, isComplete := s.compared()
		return !isComplete || slices.ContainsFunc(heads, func(name string) bool { return changes(s.records(name), path) })
	}
	for name := range s.commits {
		if s.model.touches(name, path) {
			return true
		}
	}
	return false
}

// touchesBy reports whether a commit of the delivery may change a path. With signed records, that is what the record
// says that is about it and perhaps about others.
func (s *shipment) touchesBy(name, path string) bool {
	if !s.rules.signed {
		return s.model.touches(name, path)
	}
	if heads, isComplete := s.compared(); isComplete {
		for i, head := range heads {
			if !s.upTo(head)[name] {
				break
			}
			if i == len(heads)-1 || !s.upTo(heads[i+1])[name] {
				return changes(s.records(head), path)
			}
		}
	}
	parents := s.model.commits[name].parents
	records := s.records(name)
	isOwn := s.model.commits[name].known && len(parents) == 1 &&
		slices.ContainsFunc(records, func(r *statement) bool { return r.on == parents[0] })
	return !isOwn || changes(records, path)
}

// compared returns the commits whose change records lead from the head to the commit since which everything is shipped.
// It reports false if they do not lead there.
func (s *shipment) compared() (heads []string, isComplete bool) {
	since := s.since()
	for at := s.head; at != ""; {
		heads = append(heads, at)
		next := ""
		for _, r := range s.records(at) {
			switch {
			case since != "" && r.on == since:
				return heads, true
			case next == "" && r.on != at && s.commits[r.on] && s.upTo(at)[r.on]:
				next = r.on
			}
		}
		at = next
	}
	return nil, false
}

// since returns the commit that ran, that the delivery begins after, and that contains all others of those, or "".
func (s *shipment) since() string {
	_, ran := s.running(s.env)
	ends := make(set)
	for name := range s.commits {
		if c := s.model.commits[name]; c.known {
			for _, parent := range c.parents {
				if slices.Contains(ran, parent) {
					ends[parent] = true
				}
			}
		}
	}
	for name := range ends {
		if len(without(ends, s.upTo(name))) == 0 {
			return name
		}
	}
	return ""
}

// deploymentCounts reports whether a deployment of a commit would count now.
func (m *model) deploymentCounts(s *statement) bool {
	if by := m.rolledBack(s.commit, s.env); by != "" && (s.verb == deploys || by == s.by) {
		return false
	}
	return m.standing(s.commit) == ledger.Promotable && len(m.ships(s.commit, s.env).gaps()) == 0
}
