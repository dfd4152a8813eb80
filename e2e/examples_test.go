package e2e_test

import (
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// An example is a fenced code block in docs.
type example struct{ language, code string }

// examples holds all examples of a page in docs.
type examples struct {
	t    *testing.T
	page string
	all  []example
}

func readExamples(t *testing.T, page string) examples {
	t.Helper()
	text := must.Read(t, "../docs/"+page)
	e := examples{t: t, page: page}
	for i, block := range strings.Split(string(text), "```") {
		if language, code, ok := strings.Cut(block, "\n"); ok && i%2 == 1 {
			e.all = append(e.all, example{language, code})
		}
	}
	return e
}

// pick returns the only example in a language that contains text. It fails the
// test unless there is exactly one.
func (e examples) pick(language, text string) string {
	e.t.Helper()
	var matches []string
	for _, x := range e.all {
		if x.language == language && strings.Contains(x.code, text) {
			matches = append(matches, x.code)
		}
	}
	if len(matches) != 1 {
		e.t.Fatalf("docs/%s has %d examples in %s with %q, want 1", e.page, len(matches), language, text)
	}
	return matches[0]
}
