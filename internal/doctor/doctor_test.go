package doctor

import (
	"strings"
	"testing"
)

func TestFiles(t *testing.T) {
	for _, test := range []struct {
		connections int
		level       Level
		text        string
	}{
		{999, Warning, "at most 999 connections"},
		{1000, OK, "enough for 1000 connections"},
	} {
		var e examination
		e.files(test.connections)
		if len(e.findings) != 1 {
			t.Fatalf("%d connections: %d findings, want 1", test.connections, len(e.findings))
		}
		if f := e.findings[0]; f.Check != "files" || f.Level != test.level || !strings.Contains(f.Text, test.text) {
			t.Errorf("%d connections: %+v, want %s with %q", test.connections, f, test.level, test.text)
		}
	}
}
