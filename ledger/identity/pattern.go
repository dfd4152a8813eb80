package identity

import (
	"bytes"
	"strings"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A Pattern matches DNs, for example cn=*,ou=build,o=acme. It has one or more
// attributes; those that it lacks match any value. The zero Pattern matches every DN.
type Pattern struct{ values [attrCount]parts }

// parts is a value split at its wildcards: a*b is {"a", "b"}, and a value without
// wildcards has one part. Nil parts match every value.
type parts []string

// ParsePattern parses a pattern. It has the form of a DN, but no attribute is required,
// and a * in a value matches any run of characters, including none. A literal star is
// written \* or \2a.
func ParsePattern(s string) (Pattern, error) {
	var p Pattern
	err := parseAttributes(s, func(attr int, value []piece) error {
		g, err := partsOf(value)
		p.values[attr] = g
		return err
	})
	if err != nil {
		return Pattern{}, err
	}
	return p, nil
}

// Match reports whether every attribute of the pattern matches d. It is case-sensitive.
// A missing attribute of d is empty, so * matches it.
func (p Pattern) Match(d DN) bool {
	return p.values[attrOU].match(d.OU) && p.values[attrO].match(d.O) && p.values[attrCN].match(d.CN)
}

// MatchesAll reports whether the pattern matches every DN.
func (p Pattern) MatchesAll() bool {
	for _, g := range p.values {
		if g != nil && strings.Join(g, "*") != "*" {
			return false
		}
	}
	return true
}

// Wildcards returns how many wildcards the value of p has that has the most.
func (p Pattern) Wildcards() (n int) {
	for _, g := range p.values {
		n = max(n, len(g)-1)
	}
	return n
}

// String formats p with its attributes in the order cn, ou, o.
func (p Pattern) String() string {
	b, _ := p.AppendText(nil)
	return string(b)
}

// AppendText implements encoding.TextAppender.
func (p Pattern) AppendText(b []byte) ([]byte, error) {
	start := len(b)
	for attr, g := range p.values {
		if g == nil {
			continue
		}
		if len(b) > start {
			b = append(b, ',')
		}
		b = append(append(b, attrNames[attr]...), '=')
		b = g.appendText(b)
	}
	return b, nil
}

// MarshalText implements encoding.TextMarshaler.
func (p Pattern) MarshalText() ([]byte, error) { return p.AppendText(nil) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Pattern) UnmarshalText(b []byte) error { return text.Into(p, b, ParsePattern) }

func partsOf(value []piece) (parts, error) {
	g := parts{}
	var part []byte
	for i, p := range value {
		switch {
		case !p.wild:
			part = append(part, p.c)
		case i == 0 || !value[i-1].wild: // a run of stars is one
			g = append(g, string(part))
			part = nil
		}
	}
	g = append(g, string(part))
	return g, checkValue(strings.Join(g, "*"))
}

// match reports whether value matches. It needs no backtracking: matching each inner
// part at its first occurrence leaves the most text for the others.
func (g parts) match(value string) bool {
	switch len(g) {
	case 0:
		return true
	case 1:
		return value == g[0]
	}
	return g.matchUnless("", value)
}

// matchUnless is like match, but only a * at the end matches the given characters. As in match, the
// first occurrence of a part is the best one: a later one leaves these characters to the * before it.
func (g parts) matchUnless(chars, value string) bool {
	first, last := g[0], g[len(g)-1]
	if len(g) == 1 {
		return value == first
	}
	if len(value) < len(first)+len(last) || !strings.HasPrefix(value, first) || !strings.HasSuffix(value, last) {
		return false
	}
	value = value[len(first) : len(value)-len(last)]
	for _, part := range g[1 : len(g)-1] {
		i := strings.Index(value, part)
		if i < 0 || chars != "" && strings.ContainsAny(value[:i], chars) {
			return false
		}
		value = value[i+len(part):]
	}
	return last == "" || chars == "" || !strings.ContainsAny(value, chars)
}

func (g parts) appendText(b []byte) []byte {
	for i, part := range g {
		if i > 0 {
			b = append(b, '*')
		}
		start := len(b)
		b = appendPart(b, part, i == 0, i == len(g)-1)
		// Any remaining star is a literal one.
		b = append(b[:start], bytes.ReplaceAll(b[start:], []byte("*"), []byte(`\2a`))...)
	}
	return b
}

// UnitStart returns the text with which the OU of every DN begins that p matches; empty if it
// may be any.
func (p Pattern) UnitStart() string {
	if g := p.values[attrOU]; g != nil {
		return g[0]
	}
	return ""
}
