package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// Characters that change how a terminal shows the text around them are escaped. The
// values are the same.
func TestWriteJSON(t *testing.T) {
	for value, want := range map[string]string{
		"plain":                 `"plain"`,
		"Grüße, 世界 👍":           `"Grüße, 世界 👍"`,
		"line\nbreak\ttab":      `"line\nbreak\ttab"`,
		"\x1b[31mred":           `"\u001b[31mred"`,
		"\u202egnp.exe":         `"\u202egnp.exe"`,
		"\u2066a\u2069":         `"\u2066a\u2069"`,
		"zero\u200bwidth":       `"zero\u200bwidth"`,
		"\u2028\u2029":          `"\u2028\u2029"`,
		"delete\x7f c1\u009b":   `"delete\u007f c1\u009b"`,
		"\uffff \U0010ffff":     `"\uffff \udbff\udfff"`,
		"tag \U000e0041 \ufeff": `"tag \udb40\udc41 \ufeff"`,
	} {
		var b bytes.Buffer
		must.OK(t, WriteJSON(&b, map[string]string{"v": value}))
		got := strings.TrimSuffix(strings.TrimPrefix(b.String(), "{\n  \"v\": "), "\n}\n")
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
		var again map[string]string
		if err := json.Unmarshal(b.Bytes(), &again); err != nil || again["v"] != value {
			t.Errorf("%s is %q, %v, want %q", b.Bytes(), again["v"], err, value)
		}
	}
}
