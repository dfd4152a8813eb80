package config

import "testing"

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "512": 512, "1KiB": 1 << 10, "4MiB": 4 << 20, "4 MiB": 4 << 20, "2GiB": 2 << 30, "1024": 1 << 10,
	} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "4MB", "4mib", "x", "99999999999GiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
	for size, want := range map[Size]string{0: "0", 1000: "1000", 1 << 10: "1KiB", 1536: "1536", 4 << 20: "4MiB",
		3 << 30: "3GiB"} {
		if got := size.String(); got != want {
			t.Errorf("Size(%d).String() = %q, want %q", int64(size), got, want)
		}
	}
}
