package document_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/policy/document"
	"github.com/ledgerd/ledgerd/ledger/policy/policytest"
)

func parse(t *testing.T, text string) document.Document {
	t.Helper()
	d, err := document.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

// TestYAMLHasEveryMember checks that a contract is the same after it was written as YAML
// and read again, by the present rules, and that it is the same as JSON.
func TestYAMLHasEveryMember(t *testing.T) {
	policytest.EachVariant(t, func(t *testing.T, _, variant policy.Contract) {
		variant.Rules = policy.Rules
		text, err := document.YAML(variant)
		must.OK(t, err)
		for _, form := range []string{text, string(variant.Canonical())} {
			if d := parse(t, form); !d.Is(variant.Digest()) {
				t.Errorf("%s\nis read as %s, want %s", form, d.JSON(), variant.Canonical())
			}
		}
		if strings.Contains(text, "[]") && !strings.Contains(text, "requirements: []") {
			t.Errorf("empty lists in\n%s", text)
		}
	})
}

func TestYAMLToRead(t *testing.T) {
	c, err := policy.Parse([]byte(`{"requirements":[{"name":"tests","state":"ATTESTED","predicate":"test:*",` +
		`"signers":["ou=build,o=acme"],"where":"predicate.a\n  && predicate.b","branches":["main","` +
		strings.Repeat("long/", 20) + `*"]}],"targets":"claimed"}`))
	must.OK(t, err)

	got, err := document.YAML(c)
	want := `rules: 4
requirements:
  - name: tests
    state: ATTESTED
    predicate: test:*
    signers: ['ou=build,o=acme']
    threshold: 1
    accept: [pass]
    where: |-
      predicate.a
        && predicate.b
    branches:
      - main
      - ` + strings.Repeat("long/", 20) + `*
targets: claimed
radar:
  enabled: true
  notify: LOW
  block: none
  max_age: 720h
`
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

// What people write in YAML becomes JSON, with the lines of its fields.
func TestParse(t *testing.T) {
	for yaml, want := range map[string]string{
		"requirements: []\n":                        `{"requirements":[]}`,
		"# why\nrequirements:\n":                    `{"requirements":null}`,
		"{requirements: []}":                        `{"requirements":[]}`,
		`{"requirements": [], # why` + "\n}":        `{"requirements":[]}`,
		"a: 1\nb: 0x10\nc: 1.5\nd: true\ne: yes":    `{"a":1,"b":16,"c":1.5,"d":true,"e":"yes"}`,
		"a: 2026-11-22\nb: '1'\nc: \"x\\ny\"":       `{"a":"2026-11-22","b":"1","c":"x\ny"}`,
		"a: &x [1, 2]\nb: *x":                       `{"a":[1,2],"b":[1,2]}`,
		"a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}":     `{"a":{"k":1,"l":2},"b":{"k":3,"l":2}}`,
		"a: &x {k: 1}\nb: {<<: [*x, {k: 2, m: 3}]}": `{"a":{"k":1},"b":{"k":1,"m":3}}`,
		"---\na: 1\n":                               `{"a":1}`,
		"\ufeffa: 1":                                `{"a":1}`,
		"{\n\t\"a\": 1\n}":                          "{\n\t\"a\": 1\n}",
	} {
		d, err := document.Parse(yaml)
		if err != nil || string(d.JSON()) != want {
			t.Errorf("%q is read as %s, %v; want %s", yaml, d.JSON(), err, want)
		}
	}
}

// An error names the line and the field.
func TestParseErrors(t *testing.T) {
	nested := strings.Repeat("[", 60) + strings.Repeat("]", 60)
	for text, want := range map[string]string{
		"":                                 "no contract found",
		"# nothing\n":                      "no contract found",
		"~":                                "no contract found",
		"- a":                              "line 1: a contract must be a mapping",
		"7":                                "line 1: a contract must be a mapping",
		"a: 1\n---\nb: 2":                  "several YAML documents",
		"a: 1\n---\n{":                     "invalid YAML",
		"a:\n  - b: 1\n    c: 2\n    b: 3": "line 4: a[0].b: already defined in this mapping",
		"a: [1\nb: 2":                      "line ",
		"a: b: c":                          "line 1: invalid YAML: mapping values are not allowed",
		"a: *none":                         "unknown anchor",
		"requirements:\n  - 1: x":          "line 2: requirements[0]: the name of a field must be a string",
		"a:\n  [b, c]: x":                  "line 2: a: the name of a field must be a string",
		"a: 1\nb:\n  c: .inf":              "line 3: b.c: a value of the type !!float is not possible",
		"a: !!int x":                       "line 1: a: ",
		"a: !own x":                        "line 1: a: ",
		"a:\n  <<: 7":                      "line 2: a: << must name a mapping",
		"a: " + nested:                     "nested too deeply: at most 50 levels",
		"a: &a [*a]":                       "line 1: a[0]",
		"a: &a {<<: *a}":                   "nested too deeply",
		"a: " + strings.Repeat("x", 1<<20): "too large: at most 1048576 bytes",
	} {
		_, err := document.Parse(text)
		e, ok := errors.AsType[*document.Error](err)
		if !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want an error with %q", text, err, want)
			continue
		}
		if e.Line > 0 && e.Text != strings.TrimSpace(strings.Split(text, "\n")[e.Line-1]) && len(e.Text) < 200 {
			t.Errorf("%.60q: the text of line %d is %q", text, e.Line, e.Text)
		}
	}
}

// Aliases cannot make a small document large.
func TestBombs(t *testing.T) {
	lists, merges := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n", "a0: &a0 {k: 1}\n"
	text := "a: &a " + strings.Repeat("x", 1000) + "\nb: ["
	for n := range 9 {
		aliases := strings.Repeat(fmt.Sprintf("*a%d, ", n), 10)
		lists += fmt.Sprintf("a%d: &a%d [%s]\n", n+1, n+1, strings.TrimSuffix(aliases, ", "))
		merges += fmt.Sprintf("a%d: &a%d {<<: [%s]}\n", n+1, n+1, strings.TrimSuffix(aliases, ", "))
	}
	text += strings.TrimSuffix(strings.Repeat("*a, ", 100_000), ", ") + "]"

	for name, bomb := range map[string]string{"lists": lists, "merges": merges, "text": text} {
		d, err := document.Parse(bomb)
		if err == nil || !strings.Contains(err.Error(), "too large with its aliases resolved") {
			t.Errorf("%s: %v, and %d bytes of JSON; want an error", name, err, len(d.JSON()))
		}
	}
}

// The fields of a document have the lines where a person finds them.
func TestLines(t *testing.T) {
	const yaml = "# tests\nrequirements:\n  - state: ATTESTED\n    predicate: test:*\n\n  - state: DEPLOYED\n" +
		"radar:\n  notify: LOUD"
	const json = "{\n\"requirements\": [\n{\"state\": \"ATTESTED\",\n\"predicate\": \"test:*\"},\n\n" +
		"{\"state\": \"DEPLOYED\"}],\n\"radar\": {\n\"notify\": \"LOUD\"}}"
	for _, d := range []document.Document{parse(t, yaml), parse(t, json)} {
		for field, want := range map[string]int{
			"requirements": 2, "requirements[0].state": 3, "requirements[0].predicate": 4, "requirements[1].state": 6,
			"requirements[1].predicate": 6, "radar.notify": 8, "radar.block": 7, "targets": 0, "": 0,
		} {
			if got := d.Line(field); got != want {
				t.Errorf("%s: %s is on line %d, want %d", d.JSON(), field, got, want)
			}
		}
	}
	e := parse(t, yaml).Explain("radar.notify", "no such level")
	if e.Error() != "line 8: radar.notify: no such level" || e.Text != "notify: LOUD" {
		t.Errorf("%v, of %q", e, e.Text)
	}

	broken := parse(t, "{\n\"requirements\": [\n{\"state\" 7}]}")
	if !broken.Broken() || broken.Line("") != 3 || broken.Line("radar") != 3 || broken.Line("requirements") != 2 {
		t.Errorf("the error is on line %d", broken.Line(""))
	}
	for _, rest := range []string{"{", "{\"requirements\": [", "{}x"} {
		if d := parse(t, rest); !d.Broken() || d.Line("") != 1 {
			t.Errorf("%s: line %d", rest, d.Line(""))
		}
	}
}
