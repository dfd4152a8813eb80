package identity

import (
	"bytes"
	"strings"
)

// A Pattern says which DNs are meant, such as cn=*,ou=build,o=acme. It names
// one or more attributes; those it does not name may be anything. The zero
// Pattern matches every DN.
type Pattern struct{ values [attrCount]parts }

// parts are the text of a value cut at its wildcards: a*b is {"a", "b"}, and a value
// without wildcards has one part. Nil parts match every value.
type parts []string

// ParsePattern reads a pattern: a DN as ParseDN reads it, but with any of the
// attributes, and with * in a value for any run of characters, also none. A
// star itself is written \* or \2a.
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

// Match reports whether d has what every named attribute asks for. Letters
// match in their own case only. An attribute that d lacks is empty, so that *
// alone matches it.
func (p Pattern) Match(d DN) bool {
	for attr, value := range d.values() {
		if g := p.values[attr]; g != nil && !g.match(value) {
			return false
		}
	}
	return true
}

// String writes p with its attributes in the order cn, ou, o.
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

// UnmarshalText reads a pattern.
func (p *Pattern) UnmarshalText(b []byte) error {
	parsed, err := ParsePattern(string(b))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}

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

// match needs no backtracking: taking each inner part at its first place
// leaves the most for those that follow.
func (g parts) match(value string) bool {
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
		if i < 0 {
			return false
		}
		value = value[i+len(part):]
	}
	return true
}

func (g parts) appendText(b []byte) []byte {
	for i, part := range g {
		if i > 0 {
			b = append(b, '*')
		}
		start := len(b)
		b = appendPart(b, part, i == 0, i == len(g)-1)
		// A star left over is a literal one.
		b = append(b[:start], bytes.ReplaceAll(b[start:], []byte("*"), []byte(`\2a`))...)
	}
	return b
}
