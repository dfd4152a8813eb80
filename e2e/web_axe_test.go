package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A violation is a rule of axe-core that a page breaks.
type violation struct {
	ID, Impact, Help string
	Nodes            []string
}

// axe-core finds no violation on any page, in the light and dark colour
// schemes, in a wide and a narrow window. No page logs an error or scrolls
// sideways.
func TestWebPagesAreAccessible(t *testing.T) {
	testenv.Need(t, "chromium")
	t.Parallel()
	axe := readAxe(t)
	r := newTour(t, newBusyStage(t))
	r.each(t, func(v *visitor, _ webPage) { v.isAccessible(axe) })
}

// readAxe returns the script axe-core. Without it, it skips the test.
func readAxe(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile("testdata/node/node_modules/axe-core/axe.min.js")
	if err != nil {
		testenv.Missing(t, "the npm package axe-core")
	}
	return string(axe)
}

// isAccessible runs axe-core on the page, in both colour schemes and a narrow window.
func (v *visitor) isAccessible(axe string) {
	v.t.Helper()
	// DevTools may evaluate scripts despite the content security policy.
	must.OK(v.t, chromedp.Do(v.ctx, chromedp.Evaluate[chromedp.Void](axe+";0")))
	v.window(wide, "light")
	v.axe("light", `{}`)
	v.window(wide, "dark")
	v.axe("dark", `{ runOnly: ['color-contrast', 'link-in-text-block'] }`)
	v.window(narrow, "light")
	v.axe("narrow", `{ runOnly: ['target-size', 'scrollable-region-focusable'] }`)
	if n := v.overflow(); n > 0 {
		v.t.Errorf("the page is %d px wider than the narrow window", n)
	}
}

// axe runs axe-core with options, and fails the test for each violation.
func (v *visitor) axe(label, options string) {
	v.t.Helper()
	violations, err := chromedp.Run(v.ctx,
		chromedp.Evaluate[[]violation](fmt.Sprintf(`axe.run(document, { resultTypes: ['violations'], ...%s }).then(
		(results) => results.violations.map((v) => ({ ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map((n) => `+
			`n.target.join(' ') + ': ' + n.failureSummary + ' ' + n.html) })))`, options),
			chromedp.EvalAwaitPromise))
	must.OK(v.t, err)
	for _, f := range violations {
		v.t.Errorf("%s: %s (%s): %s\n%q", label, f.ID, f.Impact, f.Help, f.Nodes)
	}
}
