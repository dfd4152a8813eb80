package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy/internal/fields"
)

// exampleContract has every member that a contract can have.
const exampleContract = `{"requirements":[
  {"state":"ATTESTED","predicate":"test:*","signers":["cn=*,ou=build,o=acme"],"threshold":1,"accept":["pass"],` +
	`"max_age":"7d"},
  {"state":"ATTESTED","predicate":"test:payments","paths":["services/payments/**"]},
  {"state":"PROMOTABLE","predicate":"review:*","threshold":2,"exclude_author":true,"branches":["main","release/*"]},
  {"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=platform,o=acme"]}],
 "radar":{"enabled":true,"notify":"LOW","block":"none","ignore":["**/go.sum"],"max_age":"720h"}}`

const exampleCanonical = `{"rules":4,"requirements":[` +
	`{"state":"ATTESTED","predicate":"test:*","signers":["cn=*,ou=build,o=acme"],"threshold":1,"accept":["pass"],` +
	`"max_age":"168h","exclude_author":false,"paths":[],"branches":[]},` +
	`{"state":"ATTESTED","predicate":"test:payments","signers":[],"threshold":1,"accept":["pass"],` +
	`"exclude_author":false,"paths":["services/payments/**"],"branches":[]},` +
	`{"state":"PROMOTABLE","predicate":"review:*","signers":[],"threshold":2,"accept":["pass"],` +
	`"exclude_author":true,"paths":[],"branches":["main","release/*"]},` +
	`{"state":"DEPLOYED","predicate":"deploy:prod","signers":["ou=platform,o=acme"],"threshold":1,"accept":["pass"],` +
	`"exclude_author":false,"paths":[],"branches":[]}],` +
	`"targets":"all","radar":{"enabled":true,"notify":"LOW","block":"none","ignore":["**/go.sum"],"max_age":"720h"}}`

// long returns a list with an entry n times.
func long(n int, entry string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
}

func TestParseContract(t *testing.T) {
	const radar = `"targets":"all","radar":{"enabled":true,"notify":"LOW","block":"none","ignore":[],"max_age":"720h"}`
	one := func(rest string) string {
		return `{"rules":4,"requirements":[{"state":"ATTESTED","predicate":"x",` + rest + `}],` + radar + `}`
	}

	for name, test := range map[string]struct{ document, canonical string }{
		"the example":            {exampleContract, exampleCanonical},
		"its own canonical form": {exampleCanonical, exampleCanonical},
		"no requirements":        {`{"requirements":[]}`, `{"rules":4,"requirements":[],` + radar + `}`},
		"null instead of a default": {`{"requirements":[],"radar":{"enabled":null,"notify":null,"block":null,` +
			`"ignore":null,"max_age":null}}`, `{"rules":4,"requirements":[],` + radar + `}`},
		"null instead of a radar": {`{"requirements":[],"radar":null}`, `{"rules":4,"requirements":[],` + radar + `}`},
		"radar settings": {
			`{"requirements":[],"radar":{"enabled":false,"notify":"HIGH","block":"MEDIUM","ignore":["*.md"],"max_age":"2w"}}`,
			`{"rules":4,"requirements":[],"targets":"all","radar":{"enabled":false,"notify":"HIGH","block":"MEDIUM",` +
				`"ignore":["*.md"],"max_age":"336h"}}`,
		},
		"defaults": {
			`{"requirements":[{"predicate":"x","state":"ATTESTED"}]}`,
			one(`"signers":[],"threshold":1,"accept":["pass"],"exclude_author":false,"paths":[],"branches":[]`),
		},
		"every member of a requirement": {
			`{"requirements":[{"branches":["*"],"paths":["a"],"exclude_author":true,"max_age":"1d","accept":["warn",` +
				`"fail","error","skip","pass"],"threshold":100,"signers":["O=acme, CN=ci"],"predicate":"x","state":"ATTESTED"}]}`,
			one(`"signers":["cn=ci,o=acme"],"threshold":100,"accept":["warn","fail","error","skip","pass"],` +
				`"max_age":"24h","exclude_author":true,"paths":["a"],"branches":["*"]`),
		},
		"the members of who and what counts": {
			`{"requirements":[{"state":"DEPLOYED","name":"ship-it","predicate":"x","distinct_from":["PROMOTABLE","ATTESTED"],` +
				`"where":"true"}],"targets":"claimed","exceptions":{"signers":["OU=sec"]}}`,
			`{"rules":4,"requirements":[{"name":"ship-it","state":"DEPLOYED","predicate":"x","signers":[],"threshold":1,` +
				`"accept":["pass"],"exclude_author":false,"distinct_from":["ATTESTED","PROMOTABLE"],"where":"true","paths":[],` +
				`"branches":[]}],"targets":"claimed","exceptions":{"signers":["ou=sec"],"max_duration":"168h"},` +
				strings.TrimPrefix(radar, `"targets":"all",`) + `}`,
		},
		"a passkey": {
			`{"requirements":[{"state":"ATTESTED","predicate":"x","passkey":true,"where":"true"}]}`,
			one(`"signers":[],"threshold":1,"accept":["pass"],"exclude_author":false,"where":"true","passkey":true,"paths":[],` +
				`"branches":[]`),
		},
		"what evidence covers": {
			`{"requirements":[{"state":"ATTESTED","predicate":"x","covers":"change","carry":["tree"]}]}`,
			one(`"signers":[],"threshold":1,"accept":["pass"],"exclude_author":false,"covers":"change","carry":["tree"],` +
				`"paths":[],"branches":[]`),
		},
		"what evidence covers by default": {
			`{"requirements":[{"state":"ATTESTED","predicate":"x","covers":"tree"}]}`,
			one(`"signers":[],"threshold":1,"accept":["pass"],"exclude_author":false,"paths":[],"branches":[]`),
		},
		"no passkey": {
			`{"requirements":[{"state":"ATTESTED","predicate":"x","passkey":false}]}`,
			one(`"signers":[],"threshold":1,"accept":["pass"],"exclude_author":false,"paths":[],"branches":[]`),
		},
		"100 globs in all": {
			`{"requirements":[{"state":"ATTESTED","predicate":"x","paths":` + long(60, `"a"`) + `,"branches":` +
				long(40, `"a"`) + `}]}`,
			one(`"signers":[],"threshold":1,"accept":["pass"],"exclude_author":false,"paths":` + long(60, `"a"`) +
				`,"branches":` + long(40, `"a"`)),
		},
		"a type URI and * as predicates": {
			`{"requirements":[{"state":"PROMOTABLE","predicate":"https://slsa.dev/provenance/v1"},{"state":"DEPLOYED",` +
				`"predicate":"*"}]}`,
			`{"rules":4,"requirements":[` +
				`{"state":"PROMOTABLE","predicate":"https://slsa.dev/provenance/v1","signers":[],"threshold":1,` +
				`"accept":["pass"],"exclude_author":false,"paths":[],"branches":[]},` +
				`{"state":"DEPLOYED","predicate":"*","signers":[],"threshold":1,"accept":["pass"],"exclude_author":false,` +
				`"paths":[],"branches":[]}],` + radar + `}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse([]byte(test.document))
			must.OK(t, err)
			if got := string(c.Canonical()); got != test.canonical {
				t.Errorf("got  %s\nwant %s", got, test.canonical)
			}
		})
	}
}

func TestParseContractRefuses(t *testing.T) {
	// Each document is refused with exactly the listed fields, each with a message that
	// contains the given text.
	one := func(member string) string {
		return `{"requirements":[{"state":"ATTESTED","predicate":"test:*"},{"state":"ATTESTED","predicate":"x",` + member +
			`}]}`
	}
	expressions := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"state":"ATTESTED","predicate":"x","where":"%d == 1"}`, i))
		}
		return `{"requirements":[` + strings.Join(list, ",") + `]}`
	}

	for name, test := range map[string]struct {
		document string
		faults   []ledger.FieldError
	}{
		"21 different expressions": {expressions(21), []ledger.FieldError{
			{Field: "requirements[20].where", Message: "too many different expressions: at most 20"}}},
		"no requirements": {`{}`, []ledger.FieldError{{Field: "requirements", Message: "required"}}},
		"null":            {`null`, []ledger.FieldError{{Field: "requirements", Message: "required"}}},
		"rules of an earlier release": {`{"rules":1,"requirements":[]}`, []ledger.FieldError{{Field: "rules",
			Message: "1 is not supported (use 4, or omit it)"}}},
		"rules of a later release": {`{"rules":5,"requirements":[]}`, []ledger.FieldError{{Field: "rules",
			Message: "5 is not supported (use 4, or omit it)"}}},
		"rules in quotes": {`{"rules":"2","requirements":[]}`, []ledger.FieldError{{Field: "rules",
			Message: "must be a whole number"}}},
		"too many requirements": {`{"requirements":` + long(201, `{}`) + `}`,
			[]ledger.FieldError{{Field: "requirements", Message: "at most 50"}}},
		"an empty requirement": {
			`{"requirements":[{}]}`,
			[]ledger.FieldError{{Field: "requirements[0].state", Message: "use ATTESTED, PROMOTABLE or DEPLOYED"},
				{Field: "requirements[0].predicate", Message: "required"}}},
		"a typo in the state": {`{"requirements":[{"state":"ATESTED","predicate":"x"}]}`,
			[]ledger.FieldError{{Field: "requirements[0].state", Message: `"ATESTED"`}}},
		"a state in lower case": {`{"requirements":[{"state":"attested","predicate":"x"}]}`,
			[]ledger.FieldError{{Field: "requirements[0].state", Message: `"attested"`}}},
		"a state without requirements": {`{"requirements":[{"state":"VALIDATING","predicate":"x"}]}`,
			[]ledger.FieldError{{Field: "requirements[0].state", Message: "use ATTESTED"}}},
		"the lowest state": {`{"requirements":[{"state":"DRAFT","predicate":"x"}]}`,
			[]ledger.FieldError{{Field: "requirements[0].state", Message: "use ATTESTED"}}},
		"a name with a blank": {one(`"name":"the tests"`), []ledger.FieldError{
			{Field: "requirements[1].name", Message: "use letters, digits and . _ -"}}},
		"a name with a colon": {one(`"name":"test:go"`), []ledger.FieldError{
			{Field: "requirements[1].name", Message: "use letters, digits"}}},
		"a long name": {one(`"name":"` + strings.Repeat("x", 65) + `"`), []ledger.FieldError{
			{Field: "requirements[1].name", Message: "at most 64 bytes"}}},
		"two requirements of one name": {
			`{"requirements":[{"name":"a","state":"ATTESTED","predicate":"x"},{"name":"a","state":"ATTESTED","predicate":"y"}]}`,
			[]ledger.FieldError{{Field: "requirements[1].name", Message: `"a" is the name of another requirement`}}},
		"distinct from its own state": {one(`"distinct_from":["ATTESTED"]`), []ledger.FieldError{
			{Field: "requirements[1].distinct_from[0]", Message: "ATTESTED is not lower than ATTESTED"}}},
		"distinct from a higher state": {one(`"distinct_from":["DEPLOYED"]`), []ledger.FieldError{
			{Field: "requirements[1].distinct_from[0]", Message: "DEPLOYED is not lower than ATTESTED"}}},
		"distinct from a state without requirements": {one(`"distinct_from":["DRAFT"]`), []ledger.FieldError{
			{Field: "requirements[1].distinct_from[0]", Message: "is not a state with requirements"}}},
		"distinct from a state twice": {
			`{"requirements":[{"state":"DEPLOYED","predicate":"x","distinct_from":["ATTESTED","ATTESTED"]}]}`,
			[]ledger.FieldError{{Field: "requirements[0].distinct_from[1]", Message: "occurs twice"}}},
		"a long expression": {one(`"where":"` + strings.Repeat("x", 2049) + `"`), []ledger.FieldError{
			{Field: "requirements[1].where", Message: "too long: 2049 bytes, at most 2048"}}},
		"an unknown target rule": {`{"requirements":[],"targets":"some"}`, []ledger.FieldError{
			{Field: "targets", Message: `"some" is not a rule (use all or claimed)`}}},
		"exceptions by nobody": {`{"requirements":[],"exceptions":{"signers":[]}}`, []ledger.FieldError{
			{Field: "exceptions.signers", Message: "required"}}},
		"exceptions with an invalid pattern": {`{"requirements":[],"exceptions":{"signers":["ann"]}}`, []ledger.FieldError{
			{Field: "exceptions.signers[0]", Message: "ann"}}},
		"exceptions for years": {`{"requirements":[],"exceptions":{"signers":["cn=*"],"max_duration":"60w"}}`,
			[]ledger.FieldError{{Field: "exceptions.max_duration", Message: "too long (use at most 8784h)"}}},
		"exceptions that are a list": {`{"requirements":[],"exceptions":[]}`, []ledger.FieldError{
			{Field: "exceptions", Message: "must be an object"}}},
		"a star inside": {`{"requirements":[{"state":"ATTESTED","predicate":"test:*:go"}]}`,
			[]ledger.FieldError{{Field: "requirements[0].predicate", Message: "ends in one *"}}},
		"two stars": {`{"requirements":[{"state":"ATTESTED","predicate":"test:**"}]}`,
			[]ledger.FieldError{{Field: "requirements[0].predicate", Message: "ends in one *"}}},
		"a long predicate": {`{"requirements":[{"state":"ATTESTED","predicate":"` + strings.Repeat("x", 513) +
			`"}]}`, []ledger.FieldError{{Field: "requirements[0].predicate", Message: "at most 512"}}},
		"threshold 0": {
			one(`"threshold":0`), []ledger.FieldError{{Field: "requirements[1].threshold", Message: "use 1 to 100"}}},
		"a negative threshold": {
			one(`"threshold":-1`), []ledger.FieldError{{Field: "requirements[1].threshold", Message: "use 1 to 100"}}},
		"a threshold too high": {
			one(`"threshold":101`), []ledger.FieldError{{Field: "requirements[1].threshold", Message: "use 1 to 100"}}},
		"a fractional threshold": {one(`"threshold":1.5`),
			[]ledger.FieldError{{Field: "requirements[1].threshold", Message: "must be a whole number"}}},
		"a threshold as a string": {one(`"threshold":"2"`),
			[]ledger.FieldError{{Field: "requirements[1].threshold", Message: "must be a whole number"}}},
		"no status accepted": {
			one(`"accept":[]`), []ledger.FieldError{{Field: "requirements[1].accept", Message: "at least one"}}},
		"an unknown status": {
			one(`"accept":["pass","ok"]`), []ledger.FieldError{{Field: "requirements[1].accept[1]", Message: `"ok"`}}},
		"a status twice": {one(`"accept":["pass","warn","pass"]`),
			[]ledger.FieldError{{Field: "requirements[1].accept[2]", Message: "twice"}}},
		"a status outside a list": {one(`"accept":"pass"`),
			[]ledger.FieldError{{Field: "requirements[1].accept", Message: "must be a list of strings"}}},
		"many statuses": {one(`"accept":` + long(101, `"pass"`)),
			[]ledger.FieldError{{Field: "requirements[1].accept", Message: "at most 100"}}},
		"no duration": {
			one(`"max_age":"a week"`), []ledger.FieldError{{Field: "requirements[1].max_age", Message: "not a duration"}}},
		"an empty duration": {
			one(`"max_age":""`), []ledger.FieldError{{Field: "requirements[1].max_age", Message: "not a duration"}}},
		"a duration of zero": {
			one(`"max_age":"0s"`), []ledger.FieldError{{Field: "requirements[1].max_age", Message: "whole milliseconds"}}},
		"a duration as a number": {
			one(`"max_age":168`), []ledger.FieldError{{Field: "requirements[1].max_age", Message: "must be a string"}}},
		"an unparsable pattern": {one(`"signers":["cn=ci","build"]`),
			[]ledger.FieldError{{Field: "requirements[1].signers[1]", Message: "build"}}},
		"an empty pattern": {
			one(`"signers":[""]`), []ledger.FieldError{{Field: "requirements[1].signers[0]", Message: ""}}},
		"many signers": {one(`"signers":` + long(101, `"cn=*"`)),
			[]ledger.FieldError{{Field: "requirements[1].signers", Message: "at most 100"}}},
		"a signer as a number": {one(`"signers":["cn=*",1]`),
			[]ledger.FieldError{{Field: "requirements[1].signers[1]", Message: "signers must be a list of strings"}}},
		"no glob": {
			one(`"paths":["a/**","[a"]`), []ledger.FieldError{{Field: "requirements[1].paths[1]", Message: "not a glob"}}},
		"an empty glob": {
			one(`"branches":[""]`), []ledger.FieldError{{Field: "requirements[1].branches[0]", Message: "empty"}}},
		"a path from the root": {
			one(`"paths":["/cmd/**"]`), []ledger.FieldError{{Field: "requirements[1].paths[0]", Message: "leading / or ./"}}},
		"a path from the current directory": {
			one(`"paths":["./cmd/**"]`), []ledger.FieldError{{Field: "requirements[1].paths[0]", Message: "leading / or ./"}}},
		"a long glob": {one(`"paths":["` + strings.Repeat("x", 513) + `"]`),
			[]ledger.FieldError{{Field: "requirements[1].paths[0]", Message: "at most 512"}}},
		"a glob with too many alternatives": {one(`"branches":["` + strings.Repeat("{a,b}", 60) + `"]`),
			[]ledger.FieldError{{Field: "requirements[1].branches[0]", Message: "alternatives"}}},
		"more than 16 alternatives": {one(`"paths":["{a,b,c,d}{a,b,c,d}","{a,b}{a,b}{a,b}{a,b}{a,b}"]`),
			[]ledger.FieldError{{Field: "requirements[1].paths[1]", Message: "more than 16 alternatives"}}},
		"nine stars": {one(`"paths":["**/*a*/**/*b*/*","**/*a*/**/*b*/**/*/*"]`),
			[]ledger.FieldError{{Field: "requirements[1].paths[1]", Message: "more than 8 runs of *"}}},
		"101 globs in all": {one(`"paths":` + long(60, `"a"`) + `,"branches":` + long(41, `"a"`)),
			[]ledger.FieldError{{Field: "requirements[1].branches", Message: "at most 100 in paths, branches and"}}},
		"200 globs, reported once": {`{"requirements":[{"state":"ATTESTED","predicate":"x","paths":` + long(99, `"a"`) +
			`},{"state":"ATTESTED","predicate":"x","paths":` + long(100, `"a"`) + `}],"radar":{"ignore":["a"]}}`,
			[]ledger.FieldError{{Field: "requirements[1].paths", Message: "at most 100 in paths, branches and"}}},
		"many paths": {one(`"paths":` + long(101, `"a"`)),
			[]ledger.FieldError{{Field: "requirements[1].paths", Message: "at most 100"}}},
		"yes instead of true": {one(`"exclude_author":"yes"`),
			[]ledger.FieldError{{Field: "requirements[1].exclude_author",
				Message: "must be true, false, \"proven\" or \"known\""}}},
		"a passkey as a string": {one(`"passkey":"true"`),
			[]ledger.FieldError{{Field: "requirements[1].passkey", Message: "must be true or false"}}},
		"other coverage": {one(`"covers":"files"`),
			[]ledger.FieldError{{Field: "requirements[1].covers", Message: `"files" is not known (use tree or change)`}}},
		"empty coverage": {one(`"covers":""`),
			[]ledger.FieldError{{Field: "requirements[1].covers", Message: "use tree or change"}}},
		"coverage as a list": {one(`"covers":["tree"]`),
			[]ledger.FieldError{{Field: "requirements[1].covers", Message: "must be a string"}}},
		"a requirement as a string": {
			`{"requirements":["x"]}`, []ledger.FieldError{{Field: "requirements[0]", Message: "must be a list of objects"}}},
		"requirements as an object": {
			`{"requirements":{}}`, []ledger.FieldError{{Field: "requirements", Message: "must be a list of objects"}}},
		"a list instead of a contract": {`[]`, nil},
		"the radar's levels": {`{"requirements":[],"radar":{"notify":"low","block":"most"}}`, []ledger.FieldError{
			{Field: "radar.notify", Message: `"low" is not a level`}, {Field: "radar.block", Message: `"most" is not a level`}}},
		"notify none": {`{"requirements":[],"radar":{"notify":"none"}}`,
			[]ledger.FieldError{{Field: "radar.notify", Message: "set enabled to false"}}},
		"radar ignore, max_age": {`{"requirements":[],"radar":{"ignore":["/go.sum"],"max_age":"0d"}}`, []ledger.FieldError{
			{Field: "radar.ignore[0]", Message: "leading / or ./"}, {Field: "radar.max_age", Message: "milliseconds"}}},
		"a radar as a string": {`{"requirements":[],"radar":"on"}`,
			[]ledger.FieldError{{Field: "radar", Message: "must be an object"}}},
		"everything at once": {
			`{"requirements":[{"state":"ATESTED","predicate":"a*b","threshold":0,"accept":["x"],"max_age":"1",` +
				`"signers":["x=y"],"paths":["{"],"branches":["["]}],"radar":{"block":"all"}}`,
			[]ledger.FieldError{
				{Field: "requirements[0].accept[0]", Message: "pass, warn, fail, error, skip or recorded"},
				{Field: "requirements[0].branches[0]", Message: "not a glob"},
				{Field: "requirements[0].max_age", Message: "not a duration"},
				{Field: "requirements[0].paths[0]", Message: "not a glob"}, {Field: "requirements[0].predicate", Message: "*"},
				{Field: "requirements[0].signers[0]", Message: "x"},
				{Field: "requirements[0].state", Message: "DEPLOYED"}, {Field: "requirements[0].threshold", Message: "100"},
				{Field: "radar.block", Message: "HIGH"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.document))
			e, ok := errors.AsType[*ledger.Error](err)
			if !ok || e.Code != ledger.CodeInvalidContract || e.Detail == "" {
				t.Fatalf("got %#v", err)
			}
			checkFaults(t, e.Fields, test.faults)
		})
	}
}

// checkFaults compares faults, ignoring their order.
func checkFaults(t *testing.T, got, want []ledger.FieldError) {
	t.Helper()
	byField := func(a, b ledger.FieldError) int { return strings.Compare(a.Field, b.Field) }
	got, want = slices.SortedFunc(slices.Values(got), byField), slices.SortedFunc(slices.Values(want), byField)
	if len(got) != len(want) {
		t.Fatalf("got %q\nwant %q", got, want)
	}
	for i := range got {
		if got[i].Field != want[i].Field || got[i].Message == "" || !strings.Contains(got[i].Message, want[i].Message) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
}

func TestParseContractInvalidJSON(t *testing.T) {
	for name, test := range map[string]struct {
		document string
		code     ledger.Code
		field    string
	}{
		"nothing":                    {"", ledger.CodeInvalidJSON, ""},
		"truncated":                  {`{"requirements":[`, ledger.CodeInvalidJSON, ""},
		"not JSON":                   {`requirements: []`, ledger.CodeInvalidJSON, ""},
		"a wrong type, and not JSON": {`{"requirements":[1],`, ledger.CodeInvalidJSON, "requirements[0]"},
		"a duplicate member":         {`{"requirements":[],"requirements":[]}`, ledger.CodeInvalidJSON, "requirements"},
		"an unknown member":          {`{"requirements":[],"rule":[]}`, ledger.CodeUnknownField, "rule"},
		"a nested unknown member": {`{"requirements":[{"state":"ATTESTED","predicate":"x","treshold":2}]}`,
			ledger.CodeUnknownField, "requirements[0].treshold"},
		"a member in the wrong case": {`{"Requirements":[]}`, ledger.CodeUnknownField, "Requirements"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.document))
			e, ok := errors.AsType[*ledger.Error](err)
			if !ok || e.Code != test.code {
				t.Fatalf("got %#v", err)
			}
			if field := fmt.Sprint(e.Fields); !strings.Contains(field, test.field) {
				t.Errorf("got %s, want %s", field, test.field)
			}
		})
	}
}

func TestParseContractLimitsFaults(t *testing.T) {
	_, err := Parse([]byte(`{"requirements":[` + strings.Repeat(`{},`, 199) + `{}]}`))
	if e, ok := errors.AsType[*ledger.Error](err); !ok || len(e.Fields) != fields.MaxFaults {
		t.Fatalf("got %v", err)
	}
}

func TestDefaultContract(t *testing.T) {
	want, err := Parse([]byte(`{"requirements":[
		{"name":"tests","state":"ATTESTED","predicate":"test:*","carry":["tree"]},
		{"name":"review","state":"PROMOTABLE","predicate":"review:*","exclude_author":true,"distinct_from":["ATTESTED"],
			"carry":["tree"]},
		{"name":"deploy","state":"DEPLOYED","predicate":"deploy:prod","distinct_from":["PROMOTABLE"]}]}`))
	must.OK(t, err)
	if got := Default(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s", got.Canonical())
	}
}

// A contract of a release before the member targets means what it meant then: a commit
// is for the target that was claimed.
func TestParseStored(t *testing.T) {
	for document, want := range map[string]TargetRule{
		`{"requirements":[]}`:                     ClaimedTargets,
		`{"requirements":[],"targets":"all"}`:     AllTargets,
		`{"requirements":[],"targets":"claimed"}`: ClaimedTargets,
	} {
		if c, err := ParseStored([]byte(document)); err != nil || c.Targets != want {
			t.Errorf("%s: %q, %v, want %q", document, c.Targets, err, want)
		}
	}
	if c, err := Parse([]byte(`{"requirements":[]}`)); err != nil || c.Targets != AllTargets {
		t.Errorf("a new contract has %q, %v, want all", c.Targets, err)
	}
}

func TestTargets(t *testing.T) {
	for _, test := range []struct {
		rule    TargetRule
		claimed string
		want    string
	}{
		{AllTargets, "", "main"},
		{AllTargets, "release", "main release"},
		{AllTargets, "release main", "release main"},
		{ClaimedTargets, "", "main"},
		{ClaimedTargets, "release topic", "release topic"},
	} {
		if got := strings.Join(test.rule.Targets("main", strings.Fields(test.claimed)), " "); got != test.want {
			t.Errorf("%s of %q: %q, want %q", test.rule, test.claimed, got, test.want)
		}
	}
}

func TestDigest(t *testing.T) {
	// The digest of a contract is part of events and ETags: it must not change unless the
	// default contract does. The first is that of the release before Rules.
	before := Default()
	before.Rules = 0
	for want, c := range map[string]Contract{
		"sha256:8689973369e203195a4a3463ccdbe7b3479dd2e8a9fdd597452e13815542b785": before,
		"sha256:1431be5650ecc670ed152054137b5eeba18cf452c750bdd2a4ffa49b09fbf1df": Default(),
	} {
		if got := c.Digest(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNeedsChanges(t *testing.T) {
	example, err := Parse([]byte(exampleContract))
	must.OK(t, err)
	if !example.NeedsChanges() || Default().NeedsChanges() {
		t.Error("only a contract with paths needs changes")
	}
}

func TestContractRoundTrip(t *testing.T) {
	testenv.Check(t, func(t *rapid.T) {
		c := drawContract(t)
		back, err := Parse(c.Canonical())
		if err != nil || !reflect.DeepEqual(back, c) {
			t.Fatalf("got %+v, %v\nfrom %s", back, err, c.Canonical())
		}
		plain, err := json.Marshal(c)
		if err != nil || string(plain) != string(c.Canonical()) {
			t.Fatalf("marshalled %s, %v\ncanonical %s", plain, err, c.Canonical())
		}
		var client Contract
		if err := ledger.DecodeStrict(plain, &client); err != nil || client.Digest() != c.Digest() {
			t.Fatalf("a client decodes %s, %v", client.Canonical(), err)
		}
	})
}

func FuzzParseContract(f *testing.F) {
	for _, seed := range []string{
		exampleContract, exampleCanonical, `{}`, `{"requirements":null}`, `{"requirements":[{}]}`,
		`{"requirements":[{"state":"DEPLOYED","predicate":"*","signers":["CN=a\\,b*, O=\\2a"],"paths":["{a,b}/[!c]"],` +
			`"max_age":"1w1.5d1h"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			if _, ok := errors.AsType[*ledger.Error](err); !ok {
				t.Fatalf("%v is not a *ledger.Error", err)
			}
			return
		}
		back, err := Parse(c.Canonical())
		if err != nil || back.Digest() != c.Digest() {
			t.Fatalf("%s parses again as %s, %v", c.Canonical(), back.Canonical(), err)
		}
	})
}
