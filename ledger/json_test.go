package ledger

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestFieldPath(t *testing.T) {
	for _, test := range []struct {
		prefix  string
		pointer jsontext.Pointer
		want    string
	}{
		{"", "", ""},
		{"", "/requirements/1/state", "requirements[1].state"},
		{"", "/0/a", "[0].a"},
		{"predicate", "", "predicate"},
		{"predicate", "/result", "predicate.result"},
		{"predicate", "/0", "predicate[0]"},
		{"", "/a~1b/c~0d", "a/b.c~d"},
		{"", "/", `[""]`},
		{"", "/a.b/c", `["a.b"].c`},
		{"", "/a/\"b\"]", `a["\"b\"]"]`},
		{"", "/a\nb", `["a\nb"]`},
		{"", "/größe/ part", "größe. part"},
		{"", jsontext.Pointer("/" + strings.Repeat("x", 1000)), strings.Repeat("x", 80) + "…"},
		{"", jsontext.Pointer(strings.Repeat("/0", 10_000)), strings.Repeat("[0]", 67) + "…"},
	} {
		if got := fieldPath(test.prefix, test.pointer); got != test.want {
			t.Errorf("%.40q: got %q, want %q", test.pointer, got, test.want)
		}
	}
}

// An error names the field, but does not repeat a long document.
func TestDecodeErrorsAreShort(t *testing.T) {
	name := strings.Repeat("x", 100_000)
	for test, text := range map[string]string{
		"unknown field":   `{"` + name + `":1}`,
		"duplicate field": `{"name":"a","name":"b"}`,
		"nested not JSON": `{"name":` + strings.Repeat("[", 5000) + `x`,
		"long time":       `{"expires_at":"` + name + `"}`,
		"long scope":      `{"scope":"` + name + `"}`,
	} {
		err := DecodeStrict([]byte(text), &NewToken{})
		fault, ok := errors.AsType[*Error](err)
		if !ok || len(fault.Fields) != 1 || fault.Fields[0].Field == "" {
			t.Errorf("%s: got %.200v, want an *Error about one field", test, err)
		} else if len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", test, len(err.Error()))
		}
	}
}
