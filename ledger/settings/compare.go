package settings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Compare returns how a row differs from the events about it. It reports false if there is no event that has all
// its fields, because the row is older than the events.
func (r *Replay) Compare(row Row) (problems []string, isLogged bool) {
	v := row.values()
	if v.isPast(row.Kind, r.now) {
		return nil, true
	}
	e := r.entries[r.keyOfRow(row, v)]
	if e != nil {
		e.isSeen = true
	}
	switch {
	case e != nil && r.isOver(row.Kind, e):
		return []string{fmt.Sprintf("it is in force, and it had ended: the last event about it is %d", e.last)}, true
	case e != nil && e.isComplete:
		return r.differences(row, v, e), true
	case r.isClosed && r.left == 0:
		return []string{"it is in force, and no event says that it was created, or what it is"}, true
	}
	return nil, false
}

// keyOfRow returns the key of a row. It numbers the repos in its values.
func (r *Replay) keyOfRow(row Row, v values) string {
	target := row.Target
	switch row.Kind {
	case Org:
		target = ""
	case Repo:
		target = number(r.repos.find(target))
	case Session:
		return keyOf(row.Kind, target, v)
	case Webhook:
		v["repo"] = number(r.repos.find(row.Repo))
	default:
		r.repos.number(v)
	}
	return key(row.Kind, target)
}

// differences returns the fields of a row that are not those of the events about it.
func (r *Replay) differences(row Row, v values, e *entry) (problems []string) {
	logged, earlier := decode(e.encoded), decode(e.disputed)
	names := make([]string, 0, len(row.Fields)+1)
	for _, f := range row.Fields {
		names = append(names, f.Name)
	}
	if row.Kind == Webhook {
		names = append(names, "repo")
	}

	for _, name := range names {
		if name == "distinct" {
			continue // a change of an identity changes it, too; the events of the type identity have it
		}
		if v[name] != logged[name] {
			problems = append(problems, fmt.Sprintf("the row has %s %s, and by the events, the last of which is %d, it is %s",
				name, r.show(name, v[name]), e.last, r.show(name, logged[name])))
		}
		if was, ok := earlier[name]; ok {
			problems = append(problems, fmt.Sprintf("before an upgrade it had %s %s, as event %d says, and by the events "+
				"before that it was %s", name, r.show(name, logged[name]), e.begun, r.show(name, was)))
		}
	}
	return problems
}

// show returns a value for people.
func (r *Replay) show(field, value string) string {
	if field == "repos" || field == "repo" {
		value = r.repos.names(value)
	}
	return cmp.Or(value, "none")
}

// Missing returns, as texts, the resources that are in force by the events before a sequence number, and of which
// no row was compared. Sessions are left out: their rows are deleted when a token has too many of them, and what is
// deleted gives no access. Tokens that have expired give none, either.
func (r *Replay) Missing(before int64) (list []string) {
	for _, key := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[key]
		kind, target, _ := strings.Cut(key, "\x00")
		if e.isSeen || !e.isComplete || e.begun >= before || kind == Session || r.isOver(kind, e) ||
			decode(e.encoded).isExpired(r.now) {
			continue
		}
		if kind == Repo {
			target = r.repos.names(target)
		}
		list = append(list, kind+" "+target)
	}
	return list
}

// Left returns the number of events about resources that were left out because there are too many.
func (r *Replay) Left() int64 { return r.left }
