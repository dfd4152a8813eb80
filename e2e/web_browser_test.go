package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A visitor uses the web interface by mouse and keyboard, in a tab with its own
// cookies.
type visitor struct {
	t   *testing.T
	ctx context.Context
	url string // base URL of the server

	mu       sync.Mutex
	problems []string // reported by the browser since the last checkConsole
}

// visitor opens a tab with a new browser context.
func (b *browser) visitor(t *testing.T, url string) *visitor {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	must.OK(t, chromedp.Do(ctx))
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	v := &visitor{t: t, ctx: ctx, url: url}
	must.OK(t, chromedp.Listen(ctx, v.listen))
	return v
}

// listen records the problems that no page may cause: errors, violations of the
// content security policy, and dialogs.
func (v *visitor) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			v.report("console.%s", e.Type)
		}
	case *runtime.EventExceptionThrown:
		v.report("exception: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// A 4xx response to a form shows a page with the error: that is expected.
		refused := e.Entry.Source == log.EntrySourceNetwork &&
			strings.Contains(e.Entry.Text, "the server responded with a status of 4")
		if e.Entry.Level == log.EntryLevelError && !(refused && !strings.Contains(e.Entry.URL, "/static/")) {
			v.report("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		v.report("dialog: %s", e.Message)
		go chromedp.Call(v.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	}
}

// report records a problem.
func (v *visitor) report(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// checkConsole fails the test if the browser has reported problems since the
// last call.
func (v *visitor) checkConsole(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, problem := range v.problems {
		t.Error(problem)
	}
	v.problems = nil
}

// disableScript disables scripts from the next page on.
func (v *visitor) disableScript() {
	v.t.Helper()
	_, err := chromedp.Call(v.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	must.OK(v.t, err)
}

// window sets the width of the window and the preferred colour scheme.
func (v *visitor) window(width int64, scheme string) {
	v.t.Helper()
	must.OK(v.t, chromedp.Do(v.ctx, chromedp.EmulateViewport(width, 860)))
	_, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
	must.OK(v.t, err)
}

// open navigates to a path of the server.
func (v *visitor) open(path string) {
	v.t.Helper()
	if err := chromedp.Do(v.ctx, chromedp.Navigate(v.url+path)); err != nil {
		v.t.Fatalf("%s: %v", path, err)
	}
}

// signIn signs in with an API token.
func (v *visitor) signIn(token string) {
	v.t.Helper()
	v.open("/login")
	v.fill("API token", token)
	v.press("Sign in")
}

// evaluate returns the value of a JavaScript expression on the visitor's page. It
// also works if scripts are disabled.
func evaluate[T any](v *visitor, expression string) T {
	v.t.Helper()
	value, err := chromedp.Run(v.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// look is like evaluate, for expressions without effects: if the page is replaced just then, it looks at the
// next one.
func (v *visitor) look(expression string) string {
	v.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		value, err := chromedp.Run(v.ctx, chromedp.Evaluate[string](expression))
		if err == nil {
			return value
		}
		if !strings.Contains(err.Error(), "navigated or closed") || time.Now().After(deadline) {
			v.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// quote returns text as a JavaScript string literal.
func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // invalid UTF-8, which no test uses
	}
	return string(quoted)
}

// read returns the visible text of the page, with white space collapsed.
func (v *visitor) read() string {
	v.t.Helper()
	return strings.Join(strings.Fields(v.look("document.body?.innerText ?? ''")), " ")
}

// sees waits until the page shows all texts.
func (v *visitor) sees(texts ...string) {
	v.t.Helper()
	for _, text := range texts {
		read := v.read()
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(read, text); read = v.read() {
			if time.Now().After(deadline) {
				v.t.Fatalf("%s does not show %q: %s", v.path(), text, read)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// path returns the path and query of the page.
func (v *visitor) path() string {
	v.t.Helper()
	return v.look("location.pathname + location.search")
}

// find is a JavaScript function. It returns the visible element whose accessible
// name is the given one, or else starts with it, and scrolls it into view.
const find = `((selector, name) => {
	const clean = (text) => text.replace(/\s+/g, ' ').trim()
	const nameOf = (e) => clean(e.getAttribute('aria-label') || e.textContent)
	const matches = [...document.querySelectorAll(selector)].filter(
		(e) => e.checkVisibility() && nameOf(e).startsWith(name))
	const element = matches.find((e) => nameOf(e) === name) || matches[0]
	element?.scrollIntoView({ block: 'center' })
	return element
})`

// press clicks the button or link with a name, and waits until the next page is
// loaded.
func (v *visitor) press(name string) {
	v.t.Helper()
	v.follow("button, a", name)
}

// follow clicks an element and waits for the page that it loads.
func (v *visitor) follow(selector, name string) {
	v.t.Helper()
	before := evaluate[float64](v, "performance.timeOrigin")
	v.click(selector, name)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		loaded, err := chromedp.Run(v.ctx,
			chromedp.Evaluate[bool](fmt.Sprintf("performance.timeOrigin !== %v && document.readyState === 'complete'", before)))
		if err == nil && loaded {
			return
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("clicking %q loaded no page: %v", name, err)
		}
	}
}

// unfold opens the details element whose summary has a name.
func (v *visitor) unfold(name string) {
	v.t.Helper()
	v.click("summary", name)
}

// tick clicks the checkbox or radio button whose label starts with name.
func (v *visitor) tick(name string) {
	v.t.Helper()
	v.click("label.choice", name)
}

// click clicks the element that matches a selector and has a name.
func (v *visitor) click(selector, name string) {
	v.t.Helper()
	position := evaluate[[]float64](v, fmt.Sprintf(`(() => {
		const rect = %s(%s, %s)?.getClientRects()[0]
		return rect ? [rect.x + Math.min(rect.width / 2, 60), rect.y + rect.height / 2] : []
	})()`, find, quote(selector), quote(name)))
	if len(position) != 2 {
		v.t.Fatalf("%s has no %s named %q: %s", v.path(), selector, name, v.read())
	}
	must.OK(v.t, chromedp.Do(v.ctx, chromedp.MouseClickXY(position[0], position[1])))
}

// fill replaces the text of the field with a label.
func (v *visitor) fill(label, text string) {
	v.t.Helper()
	if !evaluate[bool](v, fmt.Sprintf(`(() => {
		const field = %s('label', %s)?.control
		field?.focus()
		field?.select()
		return document.activeElement === field
	})()`, find, quote(label))) {
		v.t.Fatalf("%s has no field %q: %s", v.path(), label, v.read())
	}
	_, err := chromedp.Call(v.ctx, input.InsertText, input.InsertTextParams{Text: text})
	must.OK(v.t, err)
}

// value returns the text of the field with a label.
func (v *visitor) value(label string) string {
	v.t.Helper()
	return evaluate[string](v, fmt.Sprintf("%s('label', %s).control.value", find, quote(label)))
}

// secret returns the secret that the page shows.
func (v *visitor) secret() string {
	v.t.Helper()
	return evaluate[string](v, "document.querySelector('.secret code').textContent")
}

// overflow returns by how many pixels the page is wider than the window.
func (v *visitor) overflow() int {
	v.t.Helper()
	return evaluate[int](v, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}
