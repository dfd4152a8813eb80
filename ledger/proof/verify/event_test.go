package verify

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/proof"
)

// prove returns the event of a leaf with its proof.
func (r *tree) prove(index, size int64, body []byte, salt *proof.Salt, key note.Signer) Event {
	r.t.Helper()
	opening, err := proof.Opening{Salt: salt, Leaf: r.leaves[index]}.Format()
	must.OK(r.t, err)
	path, err := tlog.ProveRecord(size, index, r)
	must.OK(r.t, err)
	p := proof.Inclusion{Extra: opening, Index: index, Path: path, Checkpoint: sign(r.t, r.at(int(size)), key)}
	return Event{ID: r.leaves[index].Event, Body: body, Proof: p.Format()}
}

// summary returns the names of checks with their results.
func summary(checks []Check) string {
	var list []string
	for _, c := range checks {
		list = append(list, fmt.Sprintf("%s %s", c.Name, c.Status))
	}
	return strings.Join(list, ", ")
}

const (
	allOK   = "body ok, inclusion ok, checkpoint ok"
	badBody = "body failed, inclusion ok, checkpoint ok"
	badPath = "body ok, inclusion failed, checkpoint ok"
)

func TestEvent(t *testing.T) {
	log := (&tree{t: t}).grow(300, "ours")
	signer, verifier := newKey(t, origin)
	_, stranger := newKey(t, origin)
	salt := saltOf(7)
	good := log.prove(7, 290, bodyOf(7, "ours"), &salt, signer)

	change := func(do func(e *Event, p *proof.Inclusion)) Event {
		e := good
		p := must.Get(proof.ParseInclusion(good.Proof))(t)
		do(&e, &p)
		e.Proof = p.Format()
		return e
	}
	for name, test := range map[string]struct {
		event Event
		key   note.Verifier
		want  string
	}{
		"good":            {good, verifier, allOK},
		"no body":         {Event{ID: good.ID, Proof: good.Proof}, verifier, "body not_checked, inclusion ok, checkpoint ok"},
		"rewritten":       {Event{good.ID, bodyOf(7, "theirs"), good.Proof}, verifier, badBody},
		"another event":   {Event{log.leaves[8].Event, good.Body, good.Proof}, verifier, "inclusion failed"},
		"another key":     {good, stranger, "body ok, checkpoint failed"},
		"no proof":        {Event{good.ID, good.Body, nil}, verifier, "inclusion failed"},
		"pruned":          {log.prove(7, 290, nil, nil, signer), verifier, "body not_checked, inclusion ok, checkpoint ok"},
		"another place":   {change(func(_ *Event, p *proof.Inclusion) { p.Index++ }), verifier, badPath},
		"another path":    {change(func(_ *Event, p *proof.Inclusion) { p.Path[0][0]++ }), verifier, badPath},
		"without opening": {change(func(_ *Event, p *proof.Inclusion) { p.Extra = nil }), verifier, "inclusion failed"},
		"another size": {change(func(_ *Event, p *proof.Inclusion) { p.Checkpoint = sign(t, log.at(291), signer) }), verifier,
			badPath},
	} {
		place, checks := test.event.Verify(test.key)
		if got := summary(checks); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if isPlace := place.Signed != nil; isPlace == strings.Contains(test.want, "failed") {
			t.Errorf("%s: the place %+v", name, place)
		}
	}

	place, _ := good.Verify(verifier)
	if place.Index != 7 || place.Checkpoint != log.at(290) || place.Event != good.ID {
		t.Errorf("the place %+v", place)
	}
}

func TestReport(t *testing.T) {
	ok, skipped, failed := Passed("a", "x"), Skipped("b", "y"), Failure("c", "z")
	for _, test := range []struct {
		checks []Check
		want   bool
	}{{nil, true}, {[]Check{ok, skipped}, true}, {[]Check{failed, ok}, false}, {[]Check{ok, failed}, false}} {
		if got := NewReport("event", "evt_1", test.checks); got.Verified != test.want {
			t.Errorf("%s: %v", summary(test.checks), got.Verified)
		}
	}
}
