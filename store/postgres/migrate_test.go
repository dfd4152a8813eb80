package postgres

import (
	"regexp"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A migration has the number of the one of SQLite with the same result, so that ledgers can be
// copied between both.
func TestMigrationsHaveNumbers(t *testing.T) {
	files, latest, err := scripts()
	must.OK(t, err)
	last := 0
	for _, file := range files {
		if !regexp.MustCompile(`^migrations/\d{4}_\w+\.sql$`).MatchString(file) || versionOf(file) <= last {
			t.Errorf("%s: want a number of four digits, greater than %d", file, last)
		}
		last = versionOf(file)
	}
	if latest != last {
		t.Errorf("the latest version is %d, want %d", latest, last)
	}
}
