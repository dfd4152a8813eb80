package e2e_test

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// Live updates preserve the scroll position and the focus. A page is fetched
// again only after an event.
func TestWebLiveUpdatesKeepScrollAndFocus(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	s := newStage(t)
	v := newBrowser(t).visitor(t, s.url)
	v.window(800, "light")
	v.signIn(s.admin)
	record := func(predicate string) {
		s.now = time.Now()
		s.record("api", commitOf("request-id"), act{0, "ci", predicate, ledger.Pass, time.Second})
	}
	fetches := func() int {
		return evaluate[int](v, `performance.getEntriesByType('resource').filter((e) => e.initiatorType === 'fetch').length`)
	}

	v.open("/orgs/acme/repos/api")
	v.sees("ledgerd live")
	time.Sleep(time.Second)
	if n := fetches(); n != 0 {
		t.Errorf("the page was fetched again %d times without an event", n)
	}
	link := evaluate[string](v, `document.querySelector('.board').scrollLeft = 150; document.querySelector('.board `+
		`li:nth-child(2) a').focus({ preventScroll: true }); document.activeElement.href`)
	v.waitSwap(func() { record("build:image") })
	if left := evaluate[int](v, `document.querySelector('.board').scrollLeft`); left != 150 {
		t.Errorf("the board is scrolled to %d, want 150", left)
	}
	if got := evaluate[string](v, `document.activeElement.href ?? document.activeElement.localName`); got != link {
		t.Errorf("the focus is on %s, want %s", got, link)
	}

	evaluate[bool](v, `document.activeElement.href = '/gone', true`)
	v.waitSwap(func() { record("build:docs") })
	if part := evaluate[string](v, `document.activeElement.dataset.livePart ?? document.activeElement.localName`); part !=
		"board" {
		t.Errorf("after the focused link is removed, the focus is on %s, want the board", part)
	}

	v.open("/orgs/acme/activity")
	v.sees("ledgerd live")
	id := evaluate[string](
		v, `document.querySelector('details.raw summary').focus(), document.activeElement.parentElement.id`)
	record("build:site")
	v.sees("build:site")
	if got := evaluate[string](v, `document.activeElement.parentElement.id`); got != id {
		t.Errorf("the focus is on the summary of %q, want %s", got, id)
	}
	v.checkConsole(t)
}

// waitSwap calls trigger and waits until the page replaces the board.
func (v *visitor) waitSwap(trigger func()) {
	v.t.Helper()
	evaluate[bool](v, `window.before = document.querySelector('[data-live-part="board"]'), true`)
	trigger()
	waitFor(v.t, "an update of "+v.path(), 10*time.Second,
		func() bool { return evaluate[bool](v, `!window.before.isConnected`) })
}

// A copy button shows the outcome for a moment and then its name again, even if
// it is pressed repeatedly.
func TestWebCopyButtonsRestoreTheirNames(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	s := newStage(t)
	v := newBrowser(t).visitor(t, s.url)
	v.signIn(s.admin)
	v.open("/orgs/acme/settings/identities")
	name := func() string {
		return evaluate[string](v, `document.querySelector('.copy').getAttribute('aria-label')`)
	}
	first := name()
	for range 2 {
		evaluate[bool](v, `document.querySelector('.copy').click(), true`)
		waitFor(t, "the outcome of copying", 10*time.Second, func() bool { return name() != first })
		time.Sleep(300 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	if last := name(); last != first {
		t.Errorf("the button is named %q, want %q", last, first)
	}
}
