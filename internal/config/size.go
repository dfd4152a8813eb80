package config

import (
	"fmt"
	"strconv"
	"strings"
)

// A Size is a number of bytes. Its text form is a whole number of bytes, KiB, MiB or
// GiB.
type Size int64

// sizeUnits are in descending order. The last one, bytes, is a suffix of every text.
var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// ParseSize parses a size such as 4MiB.
func ParseSize(s string) (Size, error) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 32)
		if err != nil || n < 0 {
			break
		}
		return Size(n) * unit.size, nil
	}
	return 0, fmt.Errorf("%q is not a size (use e.g. 4MiB)", s)
}

func (b Size) String() string {
	for _, unit := range sizeUnits {
		if b >= unit.size && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalText implements encoding.TextMarshaler.
func (b Size) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Size) UnmarshalText(text []byte) error {
	parsed, err := ParseSize(string(text))
	if err != nil {
		return err
	}
	*b = parsed
	return nil
}
