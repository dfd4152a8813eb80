// Package policytest provides pairs of contracts for testing code that displays
// contracts.
package policytest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/conflicts"
)

// variants holds a contract for each member of a contract, of a requirement, of the
// exception rule and of the radar settings.
var variants = map[string]string{
	"requirement state":          `{"requirements":[{"state":"PROMOTABLE","predicate":"test:go"}]}`,
	"requirement predicate":      `{"requirements":[{"state":"ATTESTED","predicate":"test:*"}]}`,
	"requirement type":           `{"requirements":[{"state":"ATTESTED","type":"https://slsa.dev/provenance/v1"}]}`,
	"requirement signers":        `{"requirements":[{"state":"ATTESTED","predicate":"test:go","signers":["cn=ci"]}]}`,
	"requirement threshold":      `{"requirements":[{"state":"ATTESTED","predicate":"test:go","threshold":2}]}`,
	"requirement accept":         `{"requirements":[{"state":"ATTESTED","predicate":"test:go","accept":["warn"]}]}`,
	"requirement max_age":        `{"requirements":[{"state":"ATTESTED","predicate":"test:go","max_age":"1h"}]}`,
	"requirement exclude_author": `{"requirements":[{"state":"ATTESTED","predicate":"test:go","exclude_author":true}]}`,
	"requirement paths":          `{"requirements":[{"state":"ATTESTED","predicate":"test:go","paths":["a/**"]}]}`,
	"requirement branches":       `{"requirements":[{"state":"ATTESTED","predicate":"test:go","branches":["main"]}]}`,

	"requirement name":     `{"requirements":[{"name":"unit","state":"ATTESTED","predicate":"test:go"}]}`,
	"requirement passkey":  `{"requirements":[{"state":"ATTESTED","predicate":"test:go","passkey":true}]}`,
	"requirement delivery": `{"requirements":[{"state":"DEPLOYED","predicate":"deploy:prod","delivery":true}]}`,

	"requirement covers": `{"requirements":[{"state":"ATTESTED","predicate":"test:go","covers":"change"}]}`,
	"requirement levels": `{"requirements":[{"state":"ATTESTED","predicate":"vsa:*","levels":["SLSA_SOURCE_LEVEL_3"]}]}`,
	"requirement where":  `{"requirements":[{"state":"ATTESTED","predicate":"test:go","where":"predicate.n == 1"}]}`,
	"requirement distinct_from": `{"requirements":[{"state":"PROMOTABLE","predicate":"test:go",` +
		`"distinct_from":["ATTESTED"]}]}`,

	"requirement carry": `{"requirements":[{"state":"ATTESTED","predicate":"test:go","carry":["tree"]}]}`,
	"requirement carry_signers": `{"requirements":[{"state":"ATTESTED","predicate":"test:go","carry":["merge"],` +
		`"carry_signers":["cn=queue"]}]}`,

	"contract rules":   `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],"targets":"all"}`,
	"contract targets": `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],"targets":"claimed"}`,

	"exceptions signers": `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],` +
		`"exceptions":{"signers":["cn=boss"],"max_duration":"1h"}}`,
	"exceptions max_duration": `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],` +
		`"exceptions":{"signers":["ou=security"],"max_duration":"2h"}}`,

	"artifacts signers": `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],` +
		`"artifacts":{"signers":["ou=build"]}}`,

	"radar enabled": `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],"radar":{"enabled":false}}`,
	"radar notify":  `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],"radar":{"notify":"HIGH"}}`,
	"radar block":   `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],"radar":{"block":"HIGH"}}`,
	"radar ignore":  `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],"radar":{"ignore":["go.sum"]}}`,
	"radar max_age": `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],"radar":{"max_age":"1h"}}`,
}

// The contracts from which variants differ in one member.
const (
	usual      = `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}]}`
	promotable = `{"requirements":[{"state":"PROMOTABLE","predicate":"test:go"}]}`
	verified   = `{"requirements":[{"state":"ATTESTED","predicate":"vsa:*"}]}`
	merges     = `{"requirements":[{"state":"ATTESTED","predicate":"test:go","carry":["merge"],` +
		`"carry_signers":["cn=ci"]}]}`
	exceptions = `{"requirements":[{"state":"ATTESTED","predicate":"test:go"}],` +
		`"exceptions":{"signers":["ou=security"],"max_duration":"1h"}}`
)

// EachVariant runs a subtest for each member of a contract, of a requirement, of the
// exception rule and of the radar settings. It passes a contract, and a variant that
// differs from it only in that member. It fails the test if a member has no variant.
func EachVariant(t *testing.T, test func(t *testing.T, base, variant policy.Contract)) {
	t.Helper()
	for _, name := range members() {
		t.Run(name, func(t *testing.T) {
			document, ok := variants[name]
			if !ok {
				t.Fatal("this member has no variant: add one to variants")
			}
			read := policy.Parse
			if name == "contract rules" { // new contracts have no others
				read = policy.ParseStored
			}
			test(t, parse(t, policy.Parse, baseOf(name)), parse(t, read, document))
		})
	}
}

// baseOf returns the contract from which a variant differs.
func baseOf(name string) string {
	switch {
	case name == "requirement distinct_from": // there are no states below ATTESTED
		return promotable
	case name == "requirement levels":
		return verified
	case name == "requirement carry_signers":
		return merges
	case strings.HasPrefix(name, "exceptions "):
		return exceptions
	}
	return usual
}

// members lists the JSON names of the fields of contracts and of what they hold.
func members() []string {
	var names []string
	for kind, fields := range map[string]reflect.Type{
		"requirement": reflect.TypeFor[policy.Requirement](),
		"radar":       reflect.TypeFor[conflicts.Settings](),
		"exceptions":  reflect.TypeFor[policy.ExceptionRule](),
		"artifacts":   reflect.TypeFor[policy.ArtifactRule](),
		"contract":    reflect.TypeFor[policy.Contract](),
	} {
		for field := range fields.Fields() {
			if k := field.Type.Kind(); kind == "contract" && k != reflect.String && k != reflect.Int {
				continue // it has members itself
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, kind+" "+name)
		}
	}
	return names
}

func parse(t *testing.T, read func([]byte) (policy.Contract, error), document string) policy.Contract {
	t.Helper()
	c, err := read([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return c
}
