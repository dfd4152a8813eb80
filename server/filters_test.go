package server

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

func TestAttestationFilters(t *testing.T) {
	b := newBackend(t)
	ci, ops := b.signer("cn=ci,ou=build,o=acme"), b.signer(`cn=ops\, night,ou=platform,o=acme`)
	record := func(s *signer, commit int, predicate string, status ledger.Status) string {
		b.clock.advance(time.Hour)
		return decode[ledger.AttestationRecord](b.attest(s.statement(t, commitID(commit), predicate, status, 1)).want(201)).ID
	}
	b.clock.ms.Store(time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC).UnixMilli())
	names := map[string]string{
		record(ci, 1, "test:go", ledger.Pass):      "a", // 21:00
		record(ci, 1, "test:js", ledger.Fail):      "b", // 22:00
		record(ops, 1, "deploy:prod", ledger.Pass): "c", // 23:00
		record(ci, 2, "test:go", ledger.Skip):      "d", // 00:00 of the next day
		record(ops, 2, "test:go", ledger.Pass):     "e", // 1:00
	}
	for query, want := range map[string]string{
		"":                                      "edcba",
		"?order=asc":                            "abcde",
		"?predicate=test:*":                     "edba",
		"?identity=ci":                          "dba",
		"?identity=cn%3Dci,ou%3Dbuild,o%3Dacme": "dba",
		"?identity=O%3Dacme,OU%3Dbuild,CN%3Dci": "dba",
		`?identity=cn%3Dops%5C,%20night,ou%3Dplatform,o%3Dacme`: "ec",
		"?since=2026-12-01":                                   "ed",
		"?since=2026-11-30T22:00:00Z":                         "edcb",
		"?since=2026-11-30T23:00:00.001%2B01:00":              "edc",
		"?status=pass":                                        "eca",
		"?predicate_type=https://*&predicate=test:js":         "b",
		"?commit=" + commitID(1):                              "cba",
		"?predicate=test:*&identity=ci&status=pass&order=asc": "a",
	} {
		page := decode[ledger.Page[ledger.AttestationRecord]](b.get(attestationsPath + query).want(200))
		got := ""
		for _, a := range page.Data {
			got += names[a.ID]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	b.get(attestationsPath+"?commit="+commitID(3)).wantProblem(404, ledger.CodeNotFound)
	b.get(attestationsPath+"?commit="+commitID(1)[:39]).wantProblem(409, ledger.CodeAmbiguousCommit)
	b.get(attestationsPath+"/att_01KAJ8Q0M6R4YB0J3X5T9ZC2DE").wantProblem(404, ledger.CodeNotFound)
	b.get(attestationsPath+"/att_01KAJ8Q0M6R4YB0J3X5T9ZC2DE/envelope").wantProblem(404, ledger.CodeNotFound)

	predicates := decode[ledger.Page[ledger.PredicateCount]](b.get("/v1/orgs/acme/predicates").want(200))
	if got := toJSON(t, predicates.Data); got != `[{"predicate":"test:go","count":3,`+
		`"last_recorded_at":"2026-12-01T01:00:00.000Z"},`+
		`{"predicate":"test:js","count":1,"last_recorded_at":"2026-11-30T22:00:00.000Z"},`+
		`{"predicate":"deploy:prod","count":1,"last_recorded_at":"2026-11-30T23:00:00.000Z"}]` {
		t.Errorf("predicates: %s", got)
	}
}
