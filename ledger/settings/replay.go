package settings

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/member"
)

// MaxBytes is about how much memory a Replay takes at most.
const MaxBytes = 80 << 20

// A Replay has what the audit events of an org say of its resources: the last value of each field.
type Replay struct {
	now     ledger.Time
	limit   int // in bytes
	size    int
	left    int64             // events about resources beyond the limit
	entries map[string]*entry // by the result of key
	repos   repos
	lowered map[string]*lowered // by the ID of a member
	// isComplete reports whether events have all fields from now on, and isClosed whether there are events
	// about all resources.
	isComplete, isClosed bool
	// hasLate reports whether there was an event about what there was before an upgrade when it was closed. Only the
	// first is a problem, since rows that were logged so have problems of their own.
	hasLate bool
}

// NewReplay returns a Replay without events, which takes at most a number of bytes. Sessions and tokens of CI
// jobs that have expired at the time are left out.
func NewReplay(now ledger.Time, limit int) *Replay {
	return &Replay{
		now: now, limit: limit, entries: make(map[string]*entry), repos: repos{numbers: make(map[string]int)},
		lowered: make(map[string]*lowered),
	}
}

// An entry is what the events say of a resource.
type entry struct {
	encoded string // its values
	// disputed has the values before an event about what there was, if they differ.
	disputed   string
	begun      int64 // the number of the event of its creation
	last       int64 // the number of the last event about it
	hasEnded   bool
	isComplete bool // whether all its fields are known
	isSeen     bool // whether there is a row
}

// cost returns about how many bytes an entry takes.
func (e *entry) cost(key string) int { return len(key) + len(e.encoded) + len(e.disputed) + 200 }

// lowered has, by scope, the last event after which a member may not do what the scope permits. The tokens of
// the member with this scope were revoked then.
type lowered [ledger.Host]struct {
	event int64
	at    ledger.Time
}

// An action is an audit event, taken apart.
type action struct {
	seq          int64
	at           ledger.Time
	kind, verb   string
	target       string
	before       values
	after        values
	isOfBaseline bool
}

// Add adds an event, with its sequence number, after those before. It returns what is wrong with it.
func (r *Replay) Add(seq int64, e *ledger.AuditEvent) (problem string) {
	a := action{seq: seq, at: e.Timestamp, target: e.Target, before: make(values), after: valuesOf(e.Changes)}
	a.kind, a.verb, _ = strings.Cut(string(e.Action), ".")
	for _, c := range e.Changes {
		a.before[c.Field] = shorten(c.Field, c.Before)
	}
	if e.Action == ledger.AuditDatabaseBaseline {
		a.kind, a.isOfBaseline, r.isComplete = a.after.text(KindField), true, true
		delete(a.after, KindField)
		if r.isClosed && r.hasLate {
			return ""
		}
		if r.hasLate = r.isClosed; r.hasLate {
			return "it says what there was before an upgrade, and there was an event about all of that before: the " +
				"server was made to log rows again"
		}
	}

	switch a.kind {
	case Org:
		problem = r.addOrg(a)
		r.isClosed = r.isClosed || a.after[VersionField] != ""
	case Repo:
		problem = r.addRepo(a)
	case Session:
		problem = r.addSession(a)
	case Webhook:
		problem = r.addWebhook(a, e.Repo)
	case Token, exchangeRule:
		r.repos.number(a.after)
		problem = r.update(key(a.kind, a.target), a)
	case "issuer", Member, "member_rule", "passkey":
		problem = r.update(key(a.kind, a.target), a)
	}
	return problem
}

// key returns the key of a resource.
func key(kind, target string) string { return kind + "\x00" + target }

// keyOf is key, for one of several sessions of a target.
func keyOf(kind, target string, v values) string {
	return key(kind, target) + "\x00" + v.text("session_digest")
}

// update applies an event to the entry of a resource.
func (r *Replay) update(key string, a action) (problem string) {
	old := r.entries[key]
	e := entry{}
	if old != nil {
		e = *old
	}
	e.last = a.seq
	switch {
	case a.isOfBaseline && old != nil && r.isOver(a.kind, old):
		return "it says what there was before an upgrade, and the resource had ended by the events before"
	case a.isOfBaseline, slices.Contains([]string{"created", "added", "exchanged"}, a.verb):
		e = entry{encoded: a.after.encode(), begun: a.seq, last: a.seq, isComplete: r.isComplete}
		if old != nil && a.isOfBaseline {
			e.disputed = disputed(decode(old.encoded), a.after).encode()
		}
	case a.verb == "revoked", a.verb == "removed", a.verb == "ended", a.verb == "deleted" && a.kind == Webhook:
		e.encoded, e.disputed, e.hasEnded = "", "", true
	default:
		v := decode(e.encoded)
		maps.Copy(v, a.after)
		e.encoded = v.encode()
	}

	r.set(key, a, e)
	if a.kind == Member {
		r.lower(a, decode(e.encoded))
	}
	return ""
}

// disputed returns the earlier values that are others now. A release before the events about it has turned
// webhooks off without an event.
func disputed(before, now values) values {
	maps.DeleteFunc(before, func(field, value string) bool {
		return now[field] == value || field == "active" && value == "true"
	})
	return before
}

// set replaces an entry, unless it has ended by itself, or is one too many.
func (r *Replay) set(key string, a action, e entry) {
	old := r.entries[key]
	size := r.size
	if old != nil {
		size -= old.cost(key)
	}
	isPast := decode(e.encoded).isPast(a.kind, r.now) || e.hasEnded && a.kind == Session
	switch {
	case isPast:
		delete(r.entries, key)
	case old == nil && size+e.cost(key) > r.limit:
		r.left++
	default:
		r.entries[key] = &e
		size += e.cost(key)
	}
	r.size = size
}

// lower notes what a member may no longer do.
func (r *Replay) lower(a action, v values) {
	var highest member.Role
	if v["removed"] != "true" && highest.UnmarshalText([]byte(v.text("role"))) != nil {
		return // an older event
	}
	if r.lowered[a.target] == nil {
		r.lowered[a.target] = new(lowered)
	}
	for _, scope := range ledger.Scopes() {
		if scope > highest.Scope() {
			r.lowered[a.target][scope].event, r.lowered[a.target][scope].at = a.seq, a.at
		}
	}
}

// isOver reports whether a resource has ended: an event says so, or its rule was removed, or its member may no
// longer do what it permits.
func (r *Replay) isOver(kind string, e *entry) bool {
	if e.hasEnded || kind != Token && kind != Session {
		return e.hasEnded
	}
	v := decode(e.encoded)
	if rule := r.entries[key(exchangeRule, v.text("rule"))]; rule != nil && rule.hasEnded {
		return true
	}
	var scope ledger.Scope
	list := r.lowered[v.text("member")]
	if list == nil || scope.UnmarshalText([]byte(v.text("scope"))) != nil {
		return false
	}
	expires := v.expires() // those that had expired were not revoked
	return list[scope].event > e.begun && (expires == 0 || expires > list[scope].at)
}

// addSession adds an event about a sign-in, a session, or both.
func (r *Replay) addSession(a action) (problem string) {
	if v := cmp.Or(a.after.text("session_digest"), a.before.text("session_digest")); v != "" {
		problem = r.update(key(a.kind, a.target)+"\x00"+v, a)
		if a.after["scope"] == "" {
			return problem
		}
	}
	if a.verb == "ended" || a.after["scope"] != "" { // without it, it is of a release before the digests
		problem = cmp.Or(problem, r.update(keyOf(a.kind, a.target, nil), a))
	}
	return problem
}

// addWebhook adds an event about a webhook of a repo.
func (r *Replay) addWebhook(a action, repo string) string {
	n := r.repos.find(repo)
	if r.entries[key(a.kind, a.target)] == nil {
		r.repos.list[n].webhooks = append(r.repos.list[n].webhooks, a.target)
	}
	a.after["repo"] = number(n)
	return r.update(key(a.kind, a.target), a)
}

// addRepo adds an event about a repo.
func (r *Replay) addRepo(a action) (problem string) {
	var n int
	if a.verb == "renamed" || a.verb == "deleted" {
		n = r.repos.rename(a.target, a.before, a.after)
	} else {
		n = r.repos.find(a.target)
	}
	delete(a.after, "name")
	problem = r.update(key(a.kind, number(n)), a)

	for _, hook := range r.repos.list[n].webhooks {
		switch a.verb {
		case "deleted":
			r.change(Webhook, hook, a, values{"active": "false"})
		case "purged":
			r.end(Webhook, hook, a)
		}
	}
	return problem
}

// addOrg adds an event about the org. If it is deleted, all access to it ends.
func (r *Replay) addOrg(a action) (problem string) {
	delete(a.after, "name")
	r.isComplete = r.isComplete || a.after[VersionField] != ""
	problem = r.update(key(Org, ""), a)

	switch a.verb {
	case "deleted":
		for key := range r.entries {
			switch kind, target, _ := strings.Cut(key, "\x00"); kind {
			case Token, Session, "issuer", exchangeRule, "member_rule":
				r.end(kind, target, a)
			case Member:
				r.change(kind, target, a, values{"removed": "true"})
			case Webhook:
				r.change(kind, target, a, values{"active": "false"})
			}
		}
	case "purged":
		for n, repo := range r.repos.list {
			if e := r.entries[key(Repo, number(n))]; e != nil && decode(e.encoded)["purged_at"] == "" {
				r.change(Repo, number(n), a, values{"purged_at": a.after["purged_at"]})
			}
			for _, hook := range repo.webhooks {
				r.end(Webhook, hook, a)
			}
		}
	}
	return problem
}

// end ends a resource because of an event about another one.
func (r *Replay) end(kind, target string, cause action) {
	cause.kind, cause.verb = kind, "ended"
	r.update(key(kind, target), cause)
}

// change changes a resource that has not ended because of an event about another one.
func (r *Replay) change(kind, target string, cause action, v values) {
	if e := r.entries[key(kind, target)]; e != nil && !e.hasEnded {
		cause.kind, cause.verb, cause.target, cause.after, cause.isOfBaseline = kind, "changed", target, v, false
		r.update(key(kind, target), cause)
	}
}
