// Package glob matches paths and branches with the globs of a contract, in bounded
// time.
package glob

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// The limits of globs. Matching is done where the ledger writes, one commit
// after the other, so nobody's contract may make it slow for all.
const (
	MaxGlobs        = 100 // of a contract
	maxGlob         = 512 // bytes
	maxStars        = 8   // runs of * in one glob
	maxAlternatives = 16  // that the braces of one glob multiply to

	// MaxMatched bounds the paths that are matched with a contract's globs.
	MaxMatched = 2000
	// MaxMatching bounds the steps that matching them may take: a tenth of a
	// second or less.
	MaxMatching = 1 << 24
)

// CheckPath refuses, beside what is no glob, one that could never match a
// path as git has it: a requirement must not go away by a slash.
func CheckPath(glob string) error {
	if strings.HasPrefix(glob, "/") || strings.HasPrefix(glob, "./") {
		return fmt.Errorf("%q never matches: paths are relative to the repo root, without a leading / or ./", text.Clip(glob))
	}
	return Check(glob)
}

// Check says why a contract cannot hold a glob.
func Check(glob string) error {
	switch {
	case glob == "":
		return errors.New("empty glob (use e.g. release/* or services/**)")
	case len(glob) > maxGlob:
		return fmt.Errorf("too long: %d bytes, at most %d", len(glob), maxGlob)
	case !doublestar.ValidatePattern(glob):
		return fmt.Errorf("%q is not a glob (close each [ and {, and escape literal special characters with \\)", glob)
	case stars(glob) > maxStars:
		return fmt.Errorf("%q has more than %d runs of * (use several globs)", glob, maxStars)
	case alternatives(glob) > maxAlternatives:
		return fmt.Errorf("%q expands to more than %d alternatives (use several globs)", glob, maxAlternatives)
	}
	return nil
}

// stars counts the runs of * in a glob, those that stand for themselves too.
func stars(glob string) int {
	n := 0
	for i := range len(glob) {
		if glob[i] == '*' && (i == 0 || glob[i-1] != '*') {
			n++
		}
	}
	return n
}

// alternatives returns at least the number of globs that the braces of one
// stand for, which is how often matching has to try. It takes every comma for
// one that parts alternatives.
func alternatives(glob string) int {
	product, group := 1, 1
	for i := range len(glob) {
		switch glob[i] {
		case '{':
			product, group = product*group, 1
		case ',':
			group++
		}
		if product > maxAlternatives {
			break
		}
	}
	return product * group
}

// MatchAny reports whether one of the globs matches a name.
func MatchAny(globs []string, name string) bool {
	for _, g := range globs {
		if doublestar.MatchUnvalidated(g, name) {
			return true
		}
	}
	return false
}

// AnyMatch reports whether one of the globs matches one of the names. It is
// not sure where finding out would take more than so many steps.
func AnyMatch(globs, names []string, steps int) (matches, sure bool) {
	for _, g := range globs {
		shape := ShapeOf(g)
		for _, name := range names {
			may := shape.MayMatch(name)
			if steps -= shape.Cost(name, may); steps < 0 {
				return false, false
			}
			if may && doublestar.MatchUnvalidated(g, name) {
				return true, true
			}
		}
	}
	return false, true
}

// A Shape tells quickly that most names do not match a glob, and how long
// it takes to be sure of the others.
type Shape struct {
	// What every name that matches begins with, ends with and holds.
	prefix, suffix, part string
	rest                 int // bytes behind the prefix
	alternatives         int
}

// ShapeOf returns the shape of a glob.
func ShapeOf(glob string) Shape {
	const special = `*?[]{}\`
	// A slash at the edge goes with ** where that stands for no folder at all.
	s := Shape{prefix: glob, suffix: glob, alternatives: alternatives(glob)}
	if i := strings.IndexAny(glob, special); i >= 0 {
		s.prefix = strings.TrimSuffix(glob[:i], "/")
	}
	if i := strings.LastIndexAny(glob, special); i >= 0 {
		s.suffix = strings.TrimPrefix(glob[i+1:], "/")
	}
	s.rest = len(glob) - len(s.prefix)
	s.part = strings.Trim(middleLiteral(glob), "/")
	s.part = s.part[:min(len(s.part), maxPart)] // a long one is not found as fast
	return s
}

// MayMatch reports whether a name may match; if not, it does not.
func (s *Shape) MayMatch(name string) bool {
	return strings.HasPrefix(name, s.prefix) && strings.HasSuffix(name, s.suffix) && strings.Contains(name, s.part)
}

// Cost returns at least the steps that matching takes: at worst each
// alternative compares what follows each * anew from each byte of the name.
// Finding out that a name cannot match reads it fast.
func (s *Shape) Cost(name string, may bool) int {
	cost := 1 + len(name)/4
	if may {
		cost += s.alternatives * (s.rest + 1) * (len(name) - len(s.prefix) + 1)
	}
	return cost
}

const maxPart = 16

// middleLiteral returns the longest run of a glob that stands for itself,
// without that at its beginning, that at its end, and those in braces.
func middleLiteral(glob string) string {
	longest, start, depth := "", -1, 0
	end := func(i int) {
		if start >= 0 && depth == 0 && i-start > len(longest) {
			longest = glob[start:i]
		}
	}
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '*', '?':
			end(i)
			start = i + 1
		case '{':
			end(i)
			depth++
		case '}':
			depth--
			start = i + 1
		case '[':
			end(i)
			for i++; i < len(glob) && glob[i] != ']'; i++ {
				if glob[i] == '\\' {
					i++
				}
			}
			start = i + 1
		case '\\':
			end(i)
			i++
			start = i
		}
	}
	return longest
}
