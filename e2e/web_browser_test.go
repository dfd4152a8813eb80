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
)

// A visitor looks at the web interface in a tab, with cookies of their own,
// and does by mouse and keyboard what people do.
type visitor struct {
	t   *testing.T
	ctx context.Context
	url string // of the server

	mu       sync.Mutex
	troubles []string // what the browser has complained of
}

func (b *browser) visitor(t *testing.T, url string) *visitor {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	check(t, chromedp.Do(ctx))
	ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
	t.Cleanup(cancel)
	v := &visitor{t: t, ctx: ctx, url: url}
	check(t, chromedp.Listen(ctx, v.listen))
	return v
}

// listen notes what no page may cause: errors, among them what the content
// security policy has stopped, and dialogs.
func (v *visitor) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			v.trouble("console.%s", e.Type)
		}
	case *runtime.EventExceptionThrown:
		v.trouble("exception: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// An answer such as 422, with a page that says why, is no mistake of the page's.
		refused := e.Entry.Source == log.EntrySourceNetwork &&
			strings.Contains(e.Entry.Text, "the server responded with a status of 4")
		if e.Entry.Level == log.EntryLevelError && !(refused && !strings.Contains(e.Entry.URL, "/static/")) {
			v.trouble("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		v.trouble("a dialog: %s", e.Message)
		go chromedp.Call(v.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
	}
}

func (v *visitor) trouble(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.troubles = append(v.troubles, fmt.Sprintf(format, args...))
}

// calm fails the test if the browser has complained since the last time.
func (v *visitor) calm(t *testing.T) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, trouble := range v.troubles {
		t.Error(trouble)
	}
	v.troubles = nil
}

// withoutScript switches the scripts of pages off, from the next one on.
func (v *visitor) withoutScript() {
	v.t.Helper()
	_, err := chromedp.Call(v.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	check(v.t, err)
}

// window sets how wide the window is, and which colours the visitor prefers.
func (v *visitor) window(width int64, scheme string) {
	v.t.Helper()
	check(v.t, chromedp.Do(v.ctx, chromedp.EmulateViewport(width, 860)))
	_, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
	check(v.t, err)
}

// open goes to a page of the server.
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

// evaluate returns what an expression is on the visitor's page. It works
// without scripts too.
func evaluate[T any](v *visitor, expression string) T {
	v.t.Helper()
	value, err := chromedp.Run(v.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		v.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func quote(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // no test has such a text
	}
	return string(quoted)
}

// read returns what is to be read on the page, with single blanks.
func (v *visitor) read() string {
	v.t.Helper()
	return strings.Join(strings.Fields(evaluate[string](v, "document.body.innerText")), " ")
}

// sees waits until each text is to be read on the page.
func (v *visitor) sees(texts ...string) {
	v.t.Helper()
	for _, text := range texts {
		read := v.read()
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(read, text); read = v.read() {
			if time.Now().After(deadline) {
				v.t.Fatalf("%q is not on %s: %s", text, v.path(), read)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func (v *visitor) path() string {
	v.t.Helper()
	return evaluate[string](v, "location.pathname + location.search")
}

// find is the start of an expression: it looks for what is to be seen and
// named so, and brings it into view.
const find = `((selector, name) => {
	const clean = (text) => text.replace(/\s+/g, ' ').trim()
	const named = (e) => clean(e.getAttribute('aria-label') || e.textContent)
	const found = [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility() && named(e).startsWith(name))
	const one = found.find((e) => named(e) === name) || found[0]
	one?.scrollIntoView({ block: 'center' })
	return one
})`

// press clicks on the button or link of that name, and waits for the page that
// it leads to.
func (v *visitor) press(name string) {
	v.t.Helper()
	before := evaluate[float64](v, "performance.timeOrigin")
	v.click("button, a", name)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		loaded, err := chromedp.Run(v.ctx,
			chromedp.Evaluate[bool](fmt.Sprintf("performance.timeOrigin !== %v && document.readyState === 'complete'", before)))
		if err == nil && loaded {
			return
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("%q leads nowhere: %v", name, err)
		}
	}
}

// unfold opens what is hidden behind a summary.
func (v *visitor) unfold(name string) {
	v.t.Helper()
	v.click("summary", name)
}

// tick clicks on the choice that begins so.
func (v *visitor) tick(name string) {
	v.t.Helper()
	v.click("label.choice", name)
}

func (v *visitor) click(selector, name string) {
	v.t.Helper()
	at := evaluate[[]float64](v, fmt.Sprintf(`(() => {
		const rect = %s(%s, %s)?.getClientRects()[0]
		return rect ? [rect.x + Math.min(rect.width / 2, 60), rect.y + rect.height / 2] : []
	})()`, find, quote(selector), quote(name)))
	if len(at) != 2 {
		v.t.Fatalf("there is no %s %q on %s: %s", selector, name, v.path(), v.read())
	}
	check(v.t, chromedp.Do(v.ctx, chromedp.MouseClickXY(at[0], at[1])))
}

// fill types a text into the field of that label, in the place of what is there.
func (v *visitor) fill(label, text string) {
	v.t.Helper()
	if !evaluate[bool](v, fmt.Sprintf(`(() => {
		const field = %s('label', %s)?.control
		field?.focus()
		field?.select()
		return document.activeElement === field
	})()`, find, quote(label))) {
		v.t.Fatalf("there is no field %q on %s: %s", label, v.path(), v.read())
	}
	_, err := chromedp.Call(v.ctx, input.InsertText, input.InsertTextParams{Text: text})
	check(v.t, err)
}

// value returns what stands in the field of that label.
func (v *visitor) value(label string) string {
	v.t.Helper()
	return evaluate[string](v, fmt.Sprintf("%s('label', %s).control.value", find, quote(label)))
}

// secret returns what the page shows this once.
func (v *visitor) secret() string {
	v.t.Helper()
	return evaluate[string](v, "document.querySelector('.secret code').textContent")
}

// overflow returns how many pixels the page is wider than the window.
func (v *visitor) overflow() int {
	v.t.Helper()
	return evaluate[int](v, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
}
