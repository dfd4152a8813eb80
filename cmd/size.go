package cmd

import (
	"fmt"
	"strconv"
	"strings"
)

// A byteSize is a number of bytes. As text it is whole bytes, or a number of
// KiB, MiB or GiB.
type byteSize int64

// sizeUnits are ordered from the largest to the one that ends every size.
var sizeUnits = []struct {
	name string
	size byteSize
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func parseByteSize(s string) (byteSize, error) {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(s, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 32)
		if err != nil || n < 0 {
			break
		}
		return byteSize(n) * unit.size, nil
	}
	return 0, fmt.Errorf("%q is not a size such as 4MiB", s)
}

func (b byteSize) String() string {
	for _, unit := range sizeUnits {
		if b >= unit.size && b%unit.size == 0 {
			return strconv.FormatInt(int64(b/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalText implements encoding.TextMarshaler.
func (b byteSize) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *byteSize) UnmarshalText(text []byte) error {
	parsed, err := parseByteSize(string(text))
	if err != nil {
		return err
	}
	*b = parsed
	return nil
}
