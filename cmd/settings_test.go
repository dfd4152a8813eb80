package cmd

import (
	"bytes"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestExampleConfig checks that config.example.yaml names every key, with its
// default, and no other.
func TestExampleConfig(t *testing.T) {
	text, err := os.ReadFile("../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example yaml.Node
	if err := yaml.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	dropComments(&example)
	got, err := writeYAML(&example)
	if err != nil {
		t.Fatal(err)
	}
	want, err := writeYAML(defaults())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("config.example.yaml says\n%s\nbut the defaults are\n%s", got, want)
	}
}

func dropComments(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, child := range n.Content {
		dropComments(child)
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]byteSize{
		"0": 0, "512": 512, "1KiB": 1 << 10, "4MiB": 4 << 20, "4 MiB": 4 << 20, "2GiB": 2 << 30, "1024": 1 << 10,
	} {
		got, err := parseByteSize(text)
		if err != nil || got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5MiB", "4MB", "4mib", "x", "99999999999GiB"} {
		if got, err := parseByteSize(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	for size, want := range map[byteSize]string{0: "0", 1000: "1000", 1 << 10: "1KiB", 1536: "1536", 4 << 20: "4MiB", 3 << 30: "3GiB"} {
		if got := size.String(); got != want {
			t.Errorf("%d is written %q, want %q", int64(size), got, want)
		}
	}
}
