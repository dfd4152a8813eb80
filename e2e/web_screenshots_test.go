package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String(
	"screenshots", "", "`folder` for pictures of every page of the web interface, from the module's root")

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
				check(v.t, os.WriteFile(file, v.picture(width), 0o644))
			}
		}
	})
}

// picture returns one of the whole page, as a PNG file. The window is as high as
// the page for that, so that no scroll bar takes room.
func (v *visitor) picture(width int64) []byte {
	v.t.Helper()
	height := evaluate[int64](v, "document.documentElement.style.scrollbarGutter = 'auto', "+
		"document.activeElement.blur(), document.documentElement.scrollHeight")
	shot, err := chromedp.Run(v.ctx, func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		if _, err := chromedp.EmulateViewport(width, height)(ctx, target); err != nil {
			return nil, err
		}
		return chromedp.CaptureScreenshot()(ctx, target)
	})
	check(v.t, err)
	return shot
}
