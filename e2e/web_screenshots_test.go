package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

var (
	screenshots = flag.String(
		"screenshots", "", "`folder` for screenshots of every page, relative to the root of the module")
	crowded = flag.Bool("screenshots.crowd", false, "show 20 repos of 200 commits")
)

// TestWebScreenshots takes a screenshot of every page if -screenshots is set.
func TestWebScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("-screenshots is not set")
	}
	testenv.Need(t, "chromium")
	dir := *screenshots
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", dir) // tests run in the package's folder
	}
	must.OK(t, os.MkdirAll(dir, 0o755))

	var more []func(*stage)
	if *crowded {
		more = append(more, (*stage).pushCrowd)
	}
	s := newBusyStage(t, more...)
	newTour(t, s).each(t, func(v *visitor, p webPage) {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{wide, narrow} {
				v.window(width, scheme)
				file := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", p.name, width, scheme))
				must.OK(v.t, os.WriteFile(file, v.screenshot(width), 0o644))
			}
		}
	})
}

// screenshot returns an image of the whole page as PNG. It makes the window as
// high as the page, so that there is no scroll bar.
func (v *visitor) screenshot(width int64) []byte {
	v.t.Helper()
	height := evaluate[int64](v, "document.documentElement.style.scrollbarGutter = 'auto', "+
		"document.activeElement.blur(), document.documentElement.scrollHeight")
	shot, err := chromedp.Run(v.ctx, func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		if _, err := chromedp.EmulateViewport(width, height)(ctx, target); err != nil {
			return nil, err
		}
		return chromedp.CaptureScreenshot()(ctx, target)
	})
	must.OK(v.t, err)
	return shot
}
