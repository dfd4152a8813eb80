package jq

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

func run(t *testing.T, expression, text string) (string, error) {
	t.Helper()
	q, err := Parse(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	var b bytes.Buffer
	err = q.Write(t.Context(), &b, []byte(text))
	return b.String(), err
}

func TestWrite(t *testing.T) {
	t.Setenv("LEDGERD_TOKEN", "secret")
	for _, test := range []struct{ expression, text, want string }{
		{".", `{"b":1,"a":[true,null]}`, `{"a":[true,null],"b":1}` + "\n"},
		{".[].sha", `[{"sha":"1"},{"sha":"2"}]`, "1\n2\n"},
		{".[]", `[]`, ""},
		{".a", `{"a":"x\ny"}`, "x\ny\n"},
		{"{a}", `{"a":"\u202e"}`, `{"a":"\u202e"}` + "\n"},
		{". * 100000000000000000000", `3`, "300000000000000000000\n"},
		{"env | length", `1`, "0\n"},
		{"$ENV.LEDGERD_TOKEN", `1`, "null\n"},
		{"1, halt, 2", `1`, "1\n"},
	} {
		if got, err := run(t, test.expression, test.text); err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", test.expression, got, err, test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for expression, want := range map[string]string{
		".a.b":          "--jq: expected an object but got: number (1)",
		`error("no")`:   "--jq: error: no",
		"halt_error(1)": "--jq: ",
	} {
		if got, err := run(t, expression, `{"a":1}`); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %.100q, %v, want %q", expression, got, err, want)
		}
	}
	for _, expression := range []string{
		".[", "nothing", "import \"x\" as x; .", strings.Repeat(" ", maxExpression+1), "input",
	} {
		if _, err := Parse(expression); err == nil {
			t.Errorf("%.20q compiles", expression)
		}
	}
}

// An expression that does not end is stopped.
func TestEndlessExpression(t *testing.T) {
	q, err := Parse("def f: f; f")
	must.OK(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err = q.Write(ctx, new(bytes.Buffer), []byte("1"))
	if err == nil || !strings.Contains(err.Error(), "takes more than 10s") {
		t.Errorf("%v", err)
	}
}

// discarded counts what is written.
type discarded int

func (d *discarded) Write(p []byte) (int, error) { *d += discarded(len(p)); return len(p), nil }

func TestOutputIsBounded(t *testing.T) {
	q, err := Parse(`. as $x | repeat($x)`)
	must.OK(t, err)
	var n discarded
	err = q.Write(t.Context(), &n, []byte(`"`+strings.Repeat("x", 1<<20)+`"`))
	if err == nil || !strings.Contains(err.Error(), "more than 64 MiB") || n > MaxOutput {
		t.Errorf("%d bytes, %v", n, err)
	}
}
