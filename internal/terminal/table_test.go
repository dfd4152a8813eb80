package terminal

import (
	"bytes"
	"testing"
)

func TestTable(t *testing.T) {
	var b bytes.Buffer
	table := NewTable(&b, "COMMIT", "MESSAGE")
	table.Row("1234", "first line\nsecond")
	table.Row("5", "a\ttab and \x1b[31mcolour")
	table.Row("", "")
	table.Flush()
	const want = "COMMIT  MESSAGE\n1234    first line\n5       a tab and \uFFFD[31mcolour\n\n"
	if got := b.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
