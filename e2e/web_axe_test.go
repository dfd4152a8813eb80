package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"
)

// A violation is what axe-core finds wrong with a page.
type violation struct {
	ID, Impact, Help string
	Nodes            []string
}

// axe-core finds no serious fault on any page, in light and dark, on a desk
// and on a phone; none makes the browser complain or scroll sideways.
func TestWebPagesAreAccessible(t *testing.T) {
	need(t, "chromium")
	t.Parallel()
	axe, err := os.ReadFile("testdata/node/node_modules/axe-core/axe.min.js")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("axe-core is not installed: npm ci --prefix e2e/testdata/node")
	}
	r := newTour(t, newBusyStage(t))
	r.each(t, func(v *visitor, p webPage) {
		// By the tools of developers, which the content security policy does not bind.
		check(v.t, chromedp.Do(v.ctx, chromedp.Evaluate[chromedp.Void](string(axe)+";0")))
		v.axe("light", `{}`)
		v.window(wide, "dark")
		v.axe("dark", `{ runOnly: ['color-contrast', 'link-in-text-block'] }`)
		v.window(narrow, "light")
		v.axe("narrow", `{ runOnly: ['target-size', 'scrollable-region-focusable'] }`)
		if wider := v.overflow(); wider > 0 {
			v.t.Errorf("it is %d px wider than a phone", wider)
		}
	})
}

// axe runs the checks that the options name, and reports those that are
// serious.
func (v *visitor) axe(where, options string) {
	v.t.Helper()
	found, err := chromedp.Run(v.ctx,
		chromedp.Evaluate[[]violation](fmt.Sprintf(`axe.run(document, { resultTypes: ['violations'], ...%s }).then((found) =>
		found.violations.map((v) => ({ ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map((n) => `+
			`n.target.join(' ') + ': ' + n.failureSummary + ' ' + n.html) })))`, options),
			chromedp.EvalAwaitPromise))
	check(v.t, err)
	for _, f := range found {
		report := v.t.Logf
		if f.Impact == "serious" || f.Impact == "critical" {
			report = v.t.Errorf
		}
		report("%s: %s (%s): %s\n%q", where, f.ID, f.Impact, f.Help, f.Nodes)
	}
}
