package report

import (
	"io"

	"github.com/ledgerd/ledgerd/internal/ci"
)

// Guard returns a writer that makes text inert for CI systems that obey commands in the
// log: "::error::" at the start of a line, and "##[error]" or "##vso[…]" anywhere. Text with
// such commands looks the same, but has an invisible character in it. If isJSON returns
// true, the text is JSON, and the character is escaped instead, which keeps all values.
// For other providers, Guard returns w.
func Guard(w io.Writer, p ci.Provider, isJSON func() bool) io.Writer {
	switch p {
	case ci.GitHub, ci.Gitea, ci.Forgejo, ci.Azure:
		return &guard{w: w, isJSON: isJSON, blank: true}
	}
	return w
}

type guard struct {
	w      io.Writer
	isJSON func() bool
	// blank reports whether the line has only white space so far, colon whether that and
	// a colon. hashes counts the # before the next byte, up to 2.
	blank, colon bool
	hashes       int
}

// wordJoiner is an invisible character.
const wordJoiner = "\u2060"

// Write implements io.Writer.
func (g *guard) Write(text []byte) (int, error) {
	safe := make([]byte, 0, len(text)+len(wordJoiner))
	for _, c := range text {
		switch {
		case g.colon && c == ':':
			safe = append(append(safe, wordJoiner...), c)
		case g.hashes == 2 && (c == '[' || c == 'v'):
			safe = g.appendInert(safe, c)
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

func (g *guard) appendInert(safe []byte, c byte) []byte {
	if !g.isJSON() {
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
