package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "`folder` for pictures of every page of the web interface, from the module's root")

// Takes a picture of every page: go test ./e2e -run Screenshots -screenshots DIR
func TestWebScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("no -screenshots says where to put them")
	}
	need(t, "chromium")
	dir := *screenshots
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir) // tests run in the folder of their package
	}
	check(t, os.MkdirAll(dir, 0o755))
	newTour(t, newBusyStage(t)).each(t, func(v *visitor, p webPage) {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{wide, narrow} {
				v.window(width, scheme)
				file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", p.name, width, scheme))
				check(v.t, os.WriteFile(file, v.picture(), 0o644))
			}
		}
	})
}

// picture returns one of the whole page, as a PNG file.
func (v *visitor) picture() []byte {
	v.t.Helper()
	evaluate[int](v, "document.documentElement.style.scrollbarGutter = 'auto', scrollTo(0, 0), document.activeElement.blur(), 0")
	all := true
	shot, err := chromedp.Call(v.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &all})
	check(v.t, err)
	return shot.Data
}
