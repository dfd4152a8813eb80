package policy

import (
	"fmt"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
)

// by returns evidence of ci with an id, a status, and when it finished.
func by(id string, s ledger.Status, finished ledger.Time) Evidence {
	e := signed(ci, "test:go", s)
	e.Attestation, e.FinishedAt = id, finished
	return e
}

// An early success that arrives after a later failure is stale. A worse result never is.
func TestOvertaken(t *testing.T) {
	inSlot := func(e Evidence, slot string) Evidence { e.Slot = slot; return e }
	byPerson := func(e Evidence, dn string, person int64) Evidence {
		e.Signer, e.Person = signed(dn, "", "").Signer, person
		return e
	}

	tests := []struct {
		name  string
		list  []Evidence
		e     Evidence
		stale bool
	}{
		{"nothing before", nil, by("att_2", ledger.Pass, 1000), false},
		{"a pass before a fail", []Evidence{by("att_1", ledger.Fail, 1001)}, by("att_2", ledger.Pass, 1000), true},
		{"a pass at the time of a fail", []Evidence{by("att_1", ledger.Fail, 1000)}, by("att_2", ledger.Pass, 1000), false},
		{"a pass after a fail", []Evidence{by("att_1", ledger.Fail, 1000)}, by("att_2", ledger.Pass, 1001), false},
		{"a fail before a pass", []Evidence{by("att_1", ledger.Pass, 1001)}, by("att_2", ledger.Fail, 1000), false},
		{"an older fail", []Evidence{by("att_1", ledger.Fail, 1001)}, by("att_2", ledger.Fail, 1000), false},
		{"an error before a fail", []Evidence{by("att_1", ledger.Fail, 1001)}, by("att_2", ledger.Errored, 1000), false},
		{"a warning before a fail", []Evidence{by("att_1", ledger.Fail, 1001)}, by("att_2", ledger.Warn, 1000), true},
		{"a pass before a skip", []Evidence{by("att_1", ledger.Skip, 1001)}, by("att_2", ledger.Pass, 1000), true},
		{"a skip before a warning", []Evidence{by("att_1", ledger.Warn, 1001)}, by("att_2", ledger.Skip, 1000), false},
		{"a pass without a time", []Evidence{by("att_1", ledger.Fail, 1001)}, by("att_2", ledger.Pass, 0), false},
		{"a fail without a time", []Evidence{by("att_1", ledger.Fail, 0)}, by("att_2", ledger.Pass, 1000), false},
		{"a replaced fail", []Evidence{by("att_1", ledger.Fail, 1001), by("att_2", ledger.Pass, 0)},
			by("att_3", ledger.Pass, 1000), false},
		{"another image's fail", []Evidence{inSlot(by("att_1", ledger.Fail, 1001), "sha256:a")},
			inSlot(by("att_2", ledger.Pass, 1000), "sha256:b"), false},
		{"another signer's fail", []Evidence{byPerson(by("att_1", ledger.Fail, 1001), ci2, 0)},
			by("att_2", ledger.Pass, 1000), false},
		{"the same person's fail", []Evidence{byPerson(by("att_1", ledger.Fail, 1001), ci2, 7)},
			byPerson(by("att_2", ledger.Pass, 1000), ci, 7), true},
	}
	for _, test := range tests {
		want := ""
		if test.stale {
			want = "att_1"
		}
		if got := Overtaken(test.list, &test.e); got != want {
			t.Errorf("%s: overtaken by %q, want %q", test.name, got, want)
		}
	}
}

// An older failure between them does not let an early success overtake a later failure.
func TestFinished(t *testing.T) {
	list := []Evidence{by("att_1", ledger.Fail, 1005)}
	older := by("att_2", ledger.Errored, 1000)
	older.FinishedAt = Finished(list, &older)
	if older.FinishedAt != 1005 {
		t.Errorf("the older failure finished at %d, want 1005, as the later one", older.FinishedAt)
	}
	early := by("att_3", ledger.Pass, 1003)
	if got := Overtaken(append(list, older), &early); got != "att_2" {
		t.Errorf("the early success is overtaken by %q, want att_2", got)
	}

	better := by("att_4", ledger.Pass, 1010)
	if got := Finished(append(list, older), &better); got != 1010 {
		t.Errorf("the success finished at %d, want 1010", got)
	}
	worse := by("att_5", ledger.Fail, 1007)
	if got := Finished([]Evidence{better}, &worse); got != 1007 {
		t.Errorf("the failure finished at %d, want 1007", got)
	}
}

// What a requirement says about evidence with slots, of one person, or of a type.
func TestRequirementOfLatestEvidence(t *testing.T) {
	const scans, types = `{"state":"ATTESTED","predicate":"vsa:*"}`, `{"state":"ATTESTED","type":"https://slsa.dev/*"}`
	scan := func(id, image string, s ledger.Status) Evidence {
		e := signed(ci, "vsa:x", s)
		e.Attestation, e.Slot, e.PredicateType = id, "sha256:"+image, "https://slsa.dev/verification_summary/v1"
		return e
	}
	person := func(dn string, id int64) Evidence {
		e := signed(dn, "test:go", ledger.Pass)
		e.Person = id
		return e
	}

	for name, test := range map[string]struct {
		requirement string
		evidence    []Evidence
		met         bool
		reason      string
	}{
		"two images": {scans, []Evidence{scan("1", "a", ledger.Pass), scan("2", "b", ledger.Pass)}, true, "met by " + ci},
		"a failed image": {scans, []Evidence{scan("1", "0123456789abcdef", ledger.Fail), scan("2", "b", ledger.Pass)}, false,
			"vsa:x failed for sha256:0123456789ab (" + ci + ")"},
		"an image that is not accepted": {scans, []Evidence{scan("1", "a", ledger.Warn), scan("2", "b", ledger.Pass)}, false,
			"vsa:*: 0 of 1 signatures; status not accepted: vsa:x warned for sha256:a (" + ci + ")" +
				"; not for each artifact: vsa:x passed for sha256:b (" + ci + ")"},
		"the latest of an image": {scans, []Evidence{scan("2", "a", ledger.Pass), scan("1", "a", ledger.Fail)}, true,
			"met by " + ci},
		"a type":       {types, []Evidence{scan("1", "a", ledger.Pass)}, true, "met by " + ci},
		"another type": {types, []Evidence{signed(ci, "vsa:x", ledger.Pass)}, false, "https://slsa.dev/*: 0 of 1 signatures"},
		"a predicate that is a type": {`{"state":"ATTESTED","predicate":"https://slsa.dev/verification_summary/v1"}`,
			[]Evidence{scan("1", "a", ledger.Pass)}, true, "met by " + ci},
		"one person with two names": {`{"state":"ATTESTED","predicate":"test:*","threshold":2}`,
			[]Evidence{person(ci, 7), person(ci2, 7)}, false, "test:*: 1 of 2 signatures (" + ci + ")"},
		"recorded": {`{"state":"ATTESTED","predicate":"test:*"}`, []Evidence{signed(ci, "test:go", ledger.Recorded)}, false,
			"test:*: 0 of 1 signatures; status not accepted: test:go recorded (" + ci + ")"},
		"recorded, which is accepted": {`{"state":"ATTESTED","predicate":"test:*","accept":["recorded"]}`,
			[]Evidence{signed(ci, "test:go", ledger.Recorded)}, true, "met by " + ci},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustParse(t, test.requirement).Derive(attested(test.evidence...), policyNow).Requirements[0]
			if got.Met != test.met || got.Reason != test.reason {
				t.Errorf("got met %t, %s; want %t, %s", got.Met, got.Reason, test.met, test.reason)
			}
		})
	}
}

// Of many pieces of evidence, the last ones count too.
func TestLatestOfMany(t *testing.T) {
	var list []Evidence
	for i := range 3 * maxCompared {
		e := by(fmt.Sprintf("att_%02d", i), ledger.Pass, 0)
		e.Slot = fmt.Sprint(i)
		list = append(list, e)
	}
	list[len(list)-1].Slot = list[0].Slot
	if got := Latest(list); len(got) != len(list)-1 || got[0].Attestation != "att_01" {
		t.Errorf("%d pieces of evidence, the first is %s; want all but att_00", len(got), got[0].Attestation)
	}
}

// Many people, each with several names and predicates, count once each.
func TestManyPeople(t *testing.T) {
	var list []Evidence
	for i := range 10 * maxCompared {
		for _, name := range []string{"b", "a"} {
			e := signed(fmt.Sprintf("cn=%s%03d", name, i), "test:"+name, ledger.Pass)
			e.Person = int64(i + 1)
			list = append(list, e)
		}
		warned := signed(fmt.Sprintf("cn=b%03d", i), "test:b", ledger.Warn)
		warned.Person, warned.Slot = int64(i+1), "sha256:x"
		list = append(list, warned)
	}
	got := mustParse(t, `{"state":"ATTESTED","predicate":"test:*"}`).Derive(attested(list...), policyNow).Requirements[0]
	if got.Have != 10*maxCompared || got.SignersCounted[7] != "cn=a007" {
		t.Errorf("%d people count, the eighth is %s; want all by the name that counts", got.Have, got.SignersCounted[7])
	}
}

// Recorded evidence replaces only its like.
func TestReplaces(t *testing.T) {
	recorded, failed := by("att_1", ledger.Recorded, 0), by("att_2", ledger.Fail, 0)
	for _, test := range []struct {
		e, other Evidence
		want     bool
	}{{failed, recorded, true}, {recorded, failed, false}, {recorded, recorded, true}, {failed, failed, true},
		{failed, signed(ci2, "test:go", ledger.Pass), false}} {
		if got := test.e.Replaces(&test.other); got != test.want {
			t.Errorf("%s replaces %s: got %t", test.e.Status, test.other.Status, got)
		}
	}
}
