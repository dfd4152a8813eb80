package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/testenv"
)

// The keys / and Ctrl-K go to the search box, but not while somebody types. Enter searches.
func TestWebSearchByKeyboard(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	s := newStage(t)
	v := newBrowser(t).visitor(t, s.url)
	v.signIn(s.admin)
	v.open("/orgs/acme/settings/tokens/new")

	key := func(target, init string) {
		evaluate[bool](v, "document.activeElement.blur(), "+target+
			".dispatchEvent(new KeyboardEvent('keydown', {bubbles: true, cancelable: true, "+init+"}))")
	}
	focused := func() bool { return evaluate[bool](v, "document.activeElement.id === 'find'") }
	for _, init := range []string{"key: '/'", "key: 'k', ctrlKey: true", "key: 'k', metaKey: true"} {
		if key("document.body", init); !focused() {
			t.Errorf("%s: the search box has no focus", init)
		}
		if key("document.querySelector('main input')", init); focused() {
			t.Errorf("%s: the search box takes the focus from a field", init)
		}
	}
	for _, init := range []string{"key: 'k'", "key: '/', ctrlKey: true", "key: 'k', ctrlKey: true, shiftKey: true"} {
		if key("document.body", init); focused() {
			t.Errorf("%s: the search box has the focus", init)
		}
	}

	evaluate[bool](v, "document.getElementById('find').value = 'api', "+
		"document.querySelector('.find').requestSubmit(), true")
	waitFor(t, "the result", 10*time.Second, func() bool { return strings.HasPrefix(v.path(), "/orgs/acme/search?q=api") })
	v.sees("Search: api", "Repos 1")
}
