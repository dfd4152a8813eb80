package where_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger/where"
)

// The examples in docs/policy.md are between these lines.
const (
	docsFile      = "../../docs/policy.md"
	examplesBegin = "<!-- The examples of expressions. A test evaluates them. -->\n"
	examplesEnd   = "<!-- The end of the examples. -->\n"
)

// documented lists for each documented expression statements of which it is true, and
// statements of which it is not.
var documented = map[string]struct{ isTrue, isFalse []string }{
	`predicate.runDetails.builder.id == "https://ci.example/runner"`: {
		isTrue:  []string{"../testdata/cosign/provenance.statement.json"},
		isFalse: []string{"../testdata/statements/prov1_multi.json"}},
	`subject.exists(s, has(s.digest) && "sha256" in s.digest)`: {
		isTrue:  []string{"../testdata/statements/prov1_multi.json"},
		isFalse: []string{"../testdata/statements/svr02.json"}},
	`!has(predicate.failedTests) || size(predicate.failedTests) == 0`: {
		isTrue:  []string{"../testdata/statements/test-result_PASSED.json"},
		isFalse: []string{"../testdata/statements/test-result_FAILED.json"}},
	`predicate.annotations["environment"] == "staging"`: {
		isTrue: []string{"testdata/annotated.json"}},
	`subject.exists(s, has(s.annotations) && ["sourceRefs", "source_refs"].exists(name, ` +
		`name in s.annotations && "refs/heads/main" in s.annotations[name]))`: {
		isTrue:  []string{"../testdata/statements/vsa_source_L0.json"},
		isFalse: []string{"../testdata/statements/svr02.json"}},
	`!predicate.scanner.result.exists(r, r.severity.exists(s, s.score == "CRITICAL"))`: {
		isTrue:  []string{"testdata/vulns02_low.json"},
		isFalse: []string{"../testdata/statements/vulns02_critical.json"}},
}

// The documented examples are true of the statements that they are for, and only of those.
func TestDocumentedExamples(t *testing.T) {
	doc := must.Read(t, docsFile)
	_, rest, begins := strings.Cut(string(doc), examplesBegin)
	table, _, ends := strings.Cut(rest, examplesEnd)
	if !begins || !ends {
		t.Fatalf("%s has no examples between %q and %q", docsFile, examplesBegin, examplesEnd)
	}

	for expression, want := range documented {
		if !strings.Contains(table, "```\n"+expression+"\n```") {
			t.Errorf("%s does not have the example %s", docsFile, expression)
		}
		for _, file := range want.isTrue {
			if v := evalFile(t, expression, file); v != (where.Verdict{True: true}) {
				t.Errorf("%s of %s is %+v, want true", expression, file, v)
			}
		}
		for _, file := range want.isFalse {
			if v := evalFile(t, expression, file); v != (where.Verdict{}) {
				t.Errorf("%s of %s is %+v, want false", expression, file, v)
			}
		}
	}
	if n := strings.Count(table, "```") / 2; n != len(documented) {
		t.Errorf("%s has %d examples, and %d are tested", docsFile, n, len(documented))
	}
}

func evalFile(t *testing.T, expression, file string) where.Verdict {
	t.Helper()
	payload := must.Read(t, file)
	return eval(t, expression, string(payload))
}

func eval(t testing.TB, expression, payload string) where.Verdict {
	t.Helper()
	p, err := where.Compile(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return p.Eval(where.Read([]byte(payload)))
}

const payload = `{"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://example.com/t/v1",
"subject": [{"name": "a", "digest": {"gitCommit": "df04"}}, {"name": "b"}],
"predicate": {"int": 7, "whole": 9.0, "big": 9007199254740993, "exponent": 1e3, "part": 9.8, "huge": 1e400,
  "beyond": 9223372036854775808, "minus": -0, "list": [1, 2.0, "x", null, true], "nested": {"a": {"b": [{"c": 1}]}},
  "text": "grün", "time": "2026-11-20T23:30:00+02:00", "nil": null, "": "empty", "a-b": 1}}`

func TestVerdicts(t *testing.T) {
	for _, test := range []struct {
		expression string
		want       bool
	}{
		{`true`, true},
		{`type == "https://example.com/t/v1"`, true},
		{`type.startsWith("https://slsa.dev/")`, false},
		{`subject.size() == 2 && subject[0].name == "a"`, true},
		{`subject.exists(s, has(s.digest) && s.digest.gitCommit == "df04")`, true},
		{`subject.all(s, has(s.digest))`, false},
		{`predicate.nested.a.b[0].c == 1`, true},
		{`predicate["a-b"] == 1 && predicate[""] == "empty"`, true},
		{`has(predicate.missing)`, false},
		{`"nil" in predicate && has(predicate.nil) && predicate.nil == null`, true},
		{`predicate.list.size() == 5 && 2 in predicate.list && "x" in predicate.list`, true},
		{`predicate.text == "grün" && size(predicate.text) == 4`, true},
		{`predicate.text.matches("^gr.n$")`, true},

		// Numbers.
		{`type(predicate.int) == int && type(predicate.whole) == int && type(predicate.exponent) == int`, true},
		{`predicate.whole == 9 && predicate.whole == 9.0 && predicate.exponent == 1000`, true},
		{`predicate.big == 9007199254740993 && predicate.big != 9007199254740992`, true},
		{`type(predicate.part) == double && predicate.part > 9 && predicate.part >= 9.8`, true},
		{`type(predicate.beyond) == double && predicate.beyond > 9e18 && predicate.minus == 0`, true},
		{`predicate.whole >= 7.5 && predicate.int < 7.5`, true},

		// Times are in UTC.
		{`timestamp(predicate.time).getHours() == 21`, true},
		{`timestamp(predicate.time) < timestamp("2026-11-21T00:00:00Z")`, true},
		{`timestamp(predicate.time) + duration("3h") > timestamp("2026-11-21T00:00:00Z")`, true},

		// An error on one side of || or && does not matter if the other side decides.
		{`predicate.missing == 1 || true`, true},
		{`false && predicate.missing == 1`, false},
	} {
		if v := eval(t, test.expression, payload); v != (where.Verdict{True: test.want}) {
			t.Errorf("%s is %+v, want %t", test.expression, v, test.want)
		}
	}
}

func TestExpressionsThatCannotBeEvaluated(t *testing.T) {
	for _, test := range []struct{ expression, payload, want string }{
		{`predicate.missing == 1`, payload, "no such key: missing"},
		{`predicate.list[9] == 1`, payload, "index out of bounds: 9"},
		{`predicate.int.startsWith("a")`, payload, "no such overload"},
		{`predicate.int`, payload, "the result is int, not true or false"},
		{`predicate.nil`, payload, "the result is null_type, not true or false"},
		{`predicate.huge > 1.0`, payload, "a number of the statement is out of range"},
		{`predicate.int / 0 == 1`, payload, "division by zero"},
		{`timestamp(predicate.text) < timestamp(predicate.time)`, payload, "invalid RFC 3339 timestamp"},
		{`predicate.x == 1`, `{"predicate": {"x": "` + strings.Repeat("x", 70_000) + `"}}`,
			"a text of the statement has 70000 bytes: at most 65536 can be read"},
		{`predicate.x == 1`, `{"_type": "x"}`, "no such key: x"},
		{`predicate.x == 1`, `{"predicate": null}`, "no such key: x"},
		{`predicate.x == 1`, `{"predicate": [1]}`, "unsupported index type 'string' in list"},
		{`true`, ``, "the statement cannot be read: EOF"},
		{`true`, `[]`, "the statement is not a JSON object"},
		{`true`, `{"a": 1, "a": 2}`, "duplicate object member name"},
		{`true`, `{} {}`, "the statement cannot be read: something follows its end"},
		{`true`, `{"a": "` + "\xff" + `"}`, "invalid UTF-8"},
		{`true`, `{"a": [` + strings.Repeat("1,", 300_000) + `1]}`, "it has more than 300000 values"},
		{`true`, `{"` + strings.Repeat("n", 70_000) + `": 1}`, "the name of a member has more than 65536 bytes"},
		{`true`, strings.Repeat(`{"a":`, 20_000), "exceeded max depth"},
	} {
		v := eval(t, test.expression, test.payload)
		if v.True || !strings.Contains(v.Error, test.want) {
			t.Errorf("%s of %.60s is %+v, want error %q", test.expression, test.payload, v, test.want)
		}
	}
}

// A reason is one short line, whatever the statement has in it.
func TestReasonsAreShort(t *testing.T) {
	payload := `{"predicate": {"name": "\u001b[31m\nred\u202e` + strings.Repeat("x", 1000) + `"}}`
	v := eval(t, `predicate[predicate.name] == 1`, payload)
	if v.Error == "" || len(v.Error) > 100 || strings.ContainsAny(v.Error, "\x1b\n\u202e") {
		t.Errorf("the reason is %q", v.Error)
	}
}

func TestInvalidExpressions(t *testing.T) {
	for _, test := range []struct{ expression, want string }{
		{`predicate.x ==`, "line 1, column 15: Syntax error"},
		{"true &&\n  missing.x == 1", "line 2, column 3: undeclared reference to 'missing'"},
		{`1 + 1`, "the result is int (write a condition, which is true or false)"},
		{`type + 1 == "a"`, "line 1, column 6: found no matching overload"},
		{`predicate.x.matches(predicate.y)`, "line 1, column 30: the pattern of matches must be a text in quotes"},
		{`matches(type, type)`, "the pattern of matches must be a text in quotes"},
		{`type.matches("(")`, "line 1, column 14: error parsing regexp: missing closing )"},
		{`type.matches("(a{99}){10}")`, "the pattern is too large: 1012 instructions"},
		{`type.matches("a{900}b{900}")`, "the pattern is too large"},
		{`timestamp(predicate.t).getHours("Europe/Berlin") == 1`, "getHours with a time zone is not available"},
		{`predicate.t.getSeconds(predicate.z) == 1`, "getSeconds with a time zone is not available"},
		{strings.Repeat("(", 200) + "true" + strings.Repeat(")", 200), "expression recursion limit exceeded: 100"},
		{strings.Repeat("subject.all(x,", 120) + "true" + strings.Repeat(")", 120), "expression recursion limit exceeded"},
		{"true" + strings.Repeat(" ", 2045), "too long: 2049 bytes, at most 2048"},
	} {
		_, err := where.Compile(test.expression)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60s: got error %v, want %q", test.expression, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: the error has several lines: %q", test.expression, err)
		}
	}
	if _, err := where.Compile("true" + strings.Repeat(" ", 2044)); err != nil {
		t.Errorf("an expression of 2048 bytes: %v", err)
	}
}

// hostile returns a statement with large lists and texts.
func hostile() string {
	list := func(n int, element string) string { return "[" + strings.Repeat(element+",", n-1) + element + "]" }
	deep := strings.Repeat(`{"a":[`, 1000) + strings.Repeat("]}", 1000)
	return fmt.Sprintf(`{"subject": %s, "predicateType": "t", "predicate": {"ones": %s, "long": %q, "deep": [%s, %[4]s]}}`,
		list(40_000, `{"name": "a", "digest": {"sha256": "b"}}`), list(40_000, "1"), strings.Repeat("a", 60_000), deep)
}

// No expression takes long, whatever it is evaluated on: it is stopped at the limit. Each
// of these would take minutes otherwise.
func TestCostIsLimited(t *testing.T) {
	statement := where.Read([]byte(hostile()))
	for _, expression := range []string{
		`subject.all(s, subject.all(u, true))`,
		`subject.all(s, subject == subject)`,
		`subject.map(s, subject.map(u, s.name + u.name)).size() > 0`,
		`predicate.ones.all(x, predicate.ones.all(y, predicate.ones.all(z, x == y)))`,
		`predicate.ones.all(x, predicate.long == predicate.long)`,
		`predicate.ones.all(x, !(2 in predicate.ones))`,
		`predicate.ones.all(x, size(predicate.long) > 1)`,
		`predicate.ones.all(x, predicate.long + predicate.long != "")`,
		`predicate.ones.all(x, {predicate.long: 1}.size() == 1)`,
		`predicate.ones.all(x, predicate.long.contains(predicate.long))`,
		`predicate.ones.all(x, dyn(predicate.long).startsWith("aaaaaaaaaaa"))`,
		`predicate.ones.all(x, [predicate.ones] == [predicate.ones])`,
		`predicate.ones.all(x, [predicate.ones] == [[]] || true)`,
		`predicate.ones.all(x, predicate.ones + predicate.ones != [])`,
		`predicate.ones.all(x, predicate.ones + predicate.ones != predicate.ones)`,
		`predicate.ones.all(x, bytes(predicate.long) != b"")`,
		`predicate.ones.all(x, predicate.deep[0] == predicate.deep[1])`,
		`predicate.ones.all(x, string(predicate.long) != "")`,
		`predicate.ones.exists(x, predicate.long.matches("(a*)*b"))`,
		`predicate.long.matches("(a?){100}b")`,
		`[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18].all(x, size(predicate.long) > 1)`,
		`[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, predicate.long + predicate.long != "")`,
		`predicate.ones.filter(x, predicate.ones.filter(y, y == x).size() > 0).size() > 0`,
	} {
		p, err := where.Compile(expression)
		must.OK(t, err)
		if v := p.Eval(statement); v.True || v.Error != "the evaluation costs more than 100000, the limit" {
			t.Errorf("%s is %+v, want the limit of its cost", expression, v)
		}
	}

	// A text that is too long for a pattern is not matched at all. That is an error, which ||
	// can make up for; an exceeded limit is not.
	p, err := where.Compile(`predicate.long.matches("(a?){100}b") || true`)
	must.OK(t, err)
	if v := p.Eval(statement); v != (where.Verdict{True: true}) {
		t.Errorf("a long text is matched with a large pattern: %+v", v)
	}
}

// What an expression costs does not depend on chance, such as the order of a map in Go.
func TestVerdictsAreTheSameEveryTime(t *testing.T) {
	var members []string
	for i := range 30_000 {
		members = append(members, fmt.Sprintf(`"m%d": %d`, i, i))
	}
	payload := `{"predicate": {` + strings.Join(members, ",") + `}}`
	for expression, want := range map[string]bool{
		`predicate.exists(m, predicate[m] == 100)`:      true,  // found early
		`predicate.exists(m, predicate[m] == 29999)`:    false, // beyond the limit
		`predicate.exists(m, predicate[m] == -1)`:       false,
		`predicate.all(m, predicate[m] < 100) == false`: true,
	} {
		first := eval(t, expression, payload)
		if first.True != want {
			t.Errorf("%s is %+v, want %t", expression, first, want)
		}
		for range 5 {
			if again := eval(t, expression, payload); again != first {
				t.Fatalf("%s is %+v, and then %+v", expression, first, again)
			}
		}
	}
}

// FuzzWhere checks that no expression panics on any statement, that its verdict is the
// same every time, and that it is either a result or a short reason.
func FuzzWhere(f *testing.F) {
	for expression := range documented {
		f.Add(expression, payload)
	}
	files := must.Get(os.ReadDir("../testdata/statements"))(f)
	for _, file := range files {
		data := must.Read(f, "../testdata/statements/"+file.Name())
		f.Add(`subject.exists(s, s.digest.sha256 == "a") || predicate.x.matches("^a+$") || 1.5 in predicate.y`, string(data))
	}

	f.Fuzz(func(t *testing.T, expression, payload string) {
		p, err := where.Compile(expression)
		if err != nil {
			if msg := err.Error(); len(msg) > 300 || strings.Contains(msg, "\n") {
				t.Errorf("the error is %q", msg)
			}
			return
		}

		verdicts := []where.Verdict{p.Eval(where.Read([]byte(payload))), p.Eval(where.Read([]byte(payload)))}
		if v := verdicts[0]; v.True && v.Error != "" || len(v.Error) > 300 {
			t.Errorf("the verdict is %+v", v)
		}
		if verdicts = slices.Compact(verdicts); len(verdicts) > 1 {
			t.Errorf("the verdicts are %+v", verdicts)
		}
	})
}
