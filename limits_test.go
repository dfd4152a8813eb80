package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// TestLimitsAreDocumented checks that what docs/limits.md names exists: settings, codes and tests.
func TestLimitsAreDocumented(t *testing.T) {
	text := must.Read(t, "docs/limits.md")
	example := must.Read(t, "config.example.yaml")
	codes := must.Read(t, "docs/api.md")

	tests, rows := testNames(t), 0
	name := regexp.MustCompile("`([a-zA-Z_.]+)`")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.HasPrefix(cells[1], " What") || strings.HasPrefix(cells[1], "-") {
			continue
		}
		rows++

		for _, setting := range name.FindAllStringSubmatch(cells[3], -1) {
			for _, key := range strings.Split(setting[1], ".") {
				if !strings.Contains(string(example), key+":") {
					t.Errorf("%s: config.example.yaml has no setting %s", cells[1], setting[1])
				}
			}
		}
		for _, code := range name.FindAllStringSubmatch(cells[4], -1) {
			if !strings.Contains(string(codes), `<a id="`+code[1]+`">`) {
				t.Errorf("%s: docs/api.md has no code %s", cells[1], code[1])
			}
		}
		test := name.FindStringSubmatch(cells[5])
		if test == nil || !tests[test[1]] {
			t.Errorf("%s: the test %s does not exist", cells[1], cells[5])
		}
	}
	if rows < 20 {
		t.Errorf("docs/limits.md has %d limits, want at least 20", rows)
	}
}

// testNames returns the names of all tests in this repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (?:\(s suite\) )?(Test\w+)\(`)
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		isTest := strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.ToSlash(path), "store/storetest/")
		if err != nil || entry.IsDir() || !isTest {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range function.FindAllSubmatch(text, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	must.OK(t, err)
	return names
}
