package ledger

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

func TestTimeText(t *testing.T) {
	for text, want := range map[string]string{ // empty if refused
		"2026-11-20T09:00:00Z":               "2026-11-20T09:00:00.000Z",
		"2026-11-20T09:00:00.0019+01:00":     "2026-11-20T08:00:00.001Z",
		"1970-01-01T00:00:00.001Z":           "1970-01-01T00:00:00.001Z",
		"1969-12-31T23:30:00-01:00":          "1970-01-01T00:30:00.000Z",
		"9999-12-31T23:59:59.999Z":           "9999-12-31T23:59:59.999Z",
		"":                                   "",
		"2026-11-20":                         "",
		"1970-01-01T00:00:00Z":               "",
		"1970-01-01T00:00:00.0009Z":          "",
		"1970-01-01T01:00:00+01:00":          "",
		"1970-01-01T00:00:00+01:00":          "",
		"1969-12-31T23:59:59Z":               "",
		"9999-12-31T23:59:59-01:00":          "",
		strings.Repeat("2026-11-20", 10_000): "",
	} {
		var got Time
		err := got.UnmarshalText([]byte(text))
		if got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%.40q: got %q, %v; want %q", text, got, err, want)
		}
		if err != nil && (len(err.Error()) > 300 || got != 0) {
			t.Errorf("%.40q: got %d and an error of %d bytes", text, got, len(err.Error()))
		}
	}
}

// The Unix epoch is refused: as the zero Time, it would mean that a token never expires.
func TestZeroTimeIsOmitted(t *testing.T) {
	for _, text := range []string{`""`, `"1970-01-01T00:00:00Z"`} {
		var n NewToken
		err := DecodeStrict([]byte(`{"name":"ci","scope":"read","expires_at":`+text+`}`), &n)
		fault, ok := errors.AsType[*Error](err)
		if !ok || fault.Code != CodeInvalidJSON || len(fault.Fields) != 1 || fault.Fields[0].Field != "expires_at" {
			t.Errorf("%s: got %v, want %s about expires_at", text, err, CodeInvalidJSON)
		}
	}
	for _, v := range []any{Token{}, NewToken{}, Registration{}} {
		if text := string(text.JSON(v)); strings.Contains(text, `_at":`) || strings.Contains(text, `On":`) {
			t.Errorf("%T has a zero time in its JSON: %s", v, text)
		}
	}
}

func TestParseSince(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-20":                "2026-11-20T00:00:00.000Z",
		"2026-11-20T09:00:00+01:00": "2026-11-20T08:00:00.000Z",
		"1970-01-01":                "",
		"":                          "",
		"yesterday":                 "",
	} {
		if got, err := ParseSince(text); got.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
	}
}
