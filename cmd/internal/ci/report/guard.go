package report

import (
	"io"

	"github.com/ledgerd/ledgerd/cmd/internal/ci"
)

// Guard returns a writer that makes text inert for CI systems that obey commands in the
// log: "::error::" at the start of a line, and "##[error]" or "##vso[…]" anywhere. Text with
// such commands looks the same, but has an invisible character in it. In JSON, a character is
// escaped instead, which keeps all values. For other providers, Guard returns w.
func Guard(w io.Writer, p ci.Provider, style func() Style) io.Writer {
	switch p {
	case ci.GitHub, ci.Gitea, ci.Forgejo, ci.Azure:
		return &guard{w: w, style: style, blank: true}
	}
	return w
}

// A Style says what a command prints.
type Style int

// The styles. Exact text is what the user has selected for another program; it is not
// changed.
const (
	Text Style = iota
	JSON
	Exact
)

type guard struct {
	w     io.Writer
	style func() Style
	// blank reports whether the line has only white space so far, colon whether that and
	// a colon. hashes counts the # before the next byte, up to 2.
	blank, colon bool
	hashes       int
}

// wordJoiner is an invisible character.
const wordJoiner = "\u2060"

// Write implements io.Writer.
func (g *guard) Write(text []byte) (int, error) {
	style := g.style()
	if style == Exact {
		return g.w.Write(text)
	}
	safe := make([]byte, 0, len(text)+len(wordJoiner))
	for _, c := range text {
		switch {
		case g.colon && c == ':':
			safe = append(append(safe, wordJoiner...), c)
		case g.hashes == 2 && (c == '[' || c == 'v'):
			safe = appendInert(safe, c, style)
		default:
			safe = append(safe, c)
		}
		g.follow(c)
	}
	if _, err := g.w.Write(safe); err != nil {
		return 0, err
	}
	return len(text), nil
}

func appendInert(safe []byte, c byte, style Style) []byte {
	if style != JSON {
		return append(append(safe, wordJoiner...), c)
	}
	if c == '[' {
		return append(safe, `\u005b`...)
	}
	return append(safe, `\u0076`...)
}

// follow updates the state after a byte.
func (g *guard) follow(c byte) {
	g.colon = g.blank && c == ':'
	switch c {
	case '\n', '\r':
		g.blank = true
	case ' ', '\t', '\v', '\f':
	default:
		g.blank = false
	}
	if c == '#' {
		g.hashes = min(g.hashes+1, 2)
	} else {
		g.hashes = 0
	}
}
