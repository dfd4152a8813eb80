package demo

import (
	"fmt"

	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
)

// A printer prints the demo's text.
type printer struct{ *terminal.Screen }

func (p printer) print(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p printer) heading(format string, args ...any) {
	p.print("\n%s", p.Paint(terminal.Bold, fmt.Sprintf(format, args...)))
}

func (p printer) faint(text string) string { return p.Paint(terminal.Faint, text) }

func (p printer) state(state ledger.State) string {
	return p.Paint(terminal.StateColour(state), state.String())
}
