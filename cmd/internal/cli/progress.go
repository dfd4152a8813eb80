package cli

import (
	"fmt"
	"time"

	"github.com/ledgerd/ledgerd/internal/terminal"
)

// A Progress shows on a terminal how far a command is. It prints nothing elsewhere.
type Progress struct {
	out   *terminal.Screen // nil for none
	shown time.Time
}

// progressInterval is how often progress is shown.
const progressInterval = 200 * time.Millisecond

// NewProgress returns the progress of a command.
func (p *Program) NewProgress() *Progress {
	if p.Global.Quiet || !terminal.IsTerminal(p.Stderr) {
		return &Progress{}
	}
	return &Progress{out: p.Stderr}
}

// Show replaces the line: what is done, such as "checking the events", and how much of it. If
// total is 0, only what.
func (p *Progress) Show(what string, done, total int64) {
	if p.out == nil || time.Since(p.shown) < progressInterval {
		return
	}
	p.shown = time.Now()
	if total > 0 {
		what += fmt.Sprintf(": %d of %d (%d%%)", done, total, 100*done/total)
	}
	p.out.Rewrite(what)
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p.out != nil && !p.shown.IsZero() {
		p.out.Rewrite("")
	}
}
