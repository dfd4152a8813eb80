package e2e_test

import (
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
)

// Pages that change by themselves leave their readers alone: what is scrolled
// stays so, and the focus where it is. They are made once until something
// happens.
func TestWebLivePagesLeaveReadersWhereTheyAre(t *testing.T) {
	need(t, "chromium")
	t.Parallel()
	s := newStage(t)
	v := newBrowser(t).visitor(t, s.url)
	v.window(800, "light")
	v.signIn(s.admin)
	happen := func(predicate string) {
		s.now = time.Now()
		s.record("api", commitOf("request-id"), act{0, "ci", predicate, ledger.Pass, time.Second})
	}
	fetched := func() int {
		return evaluate[int](v, `performance.getEntriesByType('resource').filter((e) => e.initiatorType === 'fetch').length`)
	}

	v.open("/orgs/acme/repos/api")
	v.sees("ledgerd live")
	time.Sleep(time.Second)
	if n := fetched(); n != 0 {
		t.Errorf("the page is fetched again %d times before anything happens", n)
	}
	link := evaluate[string](v, `document.querySelector('.board').scrollLeft = 150; document.querySelector('.board `+
		`li:nth-child(2) a').focus({ preventScroll: true }); document.activeElement.href`)
	v.swaps(func() { happen("build:image") })
	if left := evaluate[int](v, `document.querySelector('.board').scrollLeft`); left != 150 {
		t.Errorf("the board is scrolled to %d, want 150", left)
	}
	if at := evaluate[string](v, `document.activeElement.href ?? document.activeElement.localName`); at != link {
		t.Errorf("the focus is on %s, want %s", at, link)
	}

	evaluate[bool](v, `document.activeElement.href = '/gone', true`)
	v.swaps(func() { happen("build:docs") })
	if part := evaluate[string](v, `document.activeElement.dataset.livePart ?? document.activeElement.localName`); part !=
		"board" {
		t.Errorf("the focus of a link that is gone is on %s, want the board", part)
	}

	v.open("/orgs/acme/activity")
	v.sees("ledgerd live")
	id := evaluate[string](
		v, `document.querySelector('details.raw summary').focus(), document.activeElement.parentElement.id`)
	happen("build:site")
	v.sees("build:site")
	if at := evaluate[string](v, `document.activeElement.parentElement.id`); at != id {
		t.Errorf("the focus is on the summary of %q, want %s", at, id)
	}
	v.checkConsole(t)
}

// swaps waits until what happens has another part take the place of the
// page's first.
func (v *visitor) swaps(happen func()) {
	v.t.Helper()
	evaluate[bool](v, `window.before = document.querySelector('[data-live-part]'), true`)
	happen()
	waitFor(v.t, "a change of "+v.path(), 10*time.Second,
		func() bool { return evaluate[bool](v, `!window.before.isConnected`) })
}

// A button that copies tells how it went for a moment, and then again what it
// does, however often it is pressed.
func TestWebCopyButtonsKeepTheirNames(t *testing.T) {
	need(t, "chromium")
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
		waitFor(t, "the outcome", 10*time.Second, func() bool { return name() != first })
		time.Sleep(300 * time.Millisecond)
	}
	time.Sleep(2 * time.Second)
	if last := name(); last != first {
		t.Errorf("the button is named %q, want %q", last, first)
	}
}
