package e2e_test

import (
	"os"
	"strings"
	"testing"
)

// An example is a fenced block of a page in docs.
type example struct{ language, code string }

type examples struct {
	t    *testing.T
	page string
	all  []example
}

func readExamples(t *testing.T, page string) examples {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	check(t, err)
	e := examples{t: t, page: page}
	for i, block := range strings.Split(string(text), "```") {
		if language, code, ok := strings.Cut(block, "\n"); ok && i%2 == 1 {
			e.all = append(e.all, example{language, code})
		}
	}
	return e
}

// pick returns the one example in a language that holds a text.
func (e examples) pick(language, text string) string {
	e.t.Helper()
	var found []string
	for _, x := range e.all {
		if x.language == language && strings.Contains(x.code, text) {
			found = append(found, x.code)
		}
	}
	if len(found) != 1 {
		e.t.Fatalf("docs/%s has %d examples in %s with %q, want one", e.page, len(found), language, text)
	}
	return found[0]
}
