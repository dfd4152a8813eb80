package cli

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/ledgerd/ledgerd/internal/must"
)

// The next argument may be the repo or, if that can be left out, the one after it.
func TestNextArguments(t *testing.T) {
	for _, test := range []struct{ names, args, want string }{
		{"", "", ""},
		{"[ORG/REPO] [REV]", "", "ORG/REPO REV"},
		{"[ORG/REPO] [REV]", "acme/api", "REV"},
		{"[ORG/REPO] [REV]", "HEAD", ""},
		{"[ORG/REPO] [REV]", "acme/api HEAD", ""},
		{"[ORG[/REPO]]", "", "ORG/REPO"},
		{"[ORG/REPO]", "", "ORG/REPO"},
		{"[ORG/REPO] WEBHOOK [DELIVERY]", "acme/api", "WEBHOOK"},
		{"[ORG/REPO] WEBHOOK [DELIVERY]", "whk_1", "DELIVERY"},
		{"[ORG/REPO] WEBHOOK [DELIVERY]", "acme/api whk_1", "DELIVERY"},
		{"ID", "", "ID"},
		{"ID", "idn_1", ""},
	} {
		if got := strings.Join(nextArguments(strings.Fields(test.names), strings.Fields(test.args)), " "); got != test.want {
			t.Errorf("%q after %q: %q, want %q", test.names, test.args, got, test.want)
		}
	}
}

// A list of candidates is bounded, and an error ends it without a message.
func TestCandidatesAreBounded(t *testing.T) {
	endless := iter.Seq2[int, error](func(yield func(int, error) bool) {
		for i := 0; yield(i, nil); i++ {
		}
	})
	if list := distinct(endless, func(i int) string { return fmt.Sprint(i) }); len(list) != maxCompletions {
		t.Errorf("%d candidates, want %d", len(list), maxCompletions)
	}
	broken := iter.Seq2[int, error](func(yield func(int, error) bool) {
		for range 2 {
			if !yield(1, nil) {
				return
			}
		}
		yield(2, errors.New("broken"))
	})
	if list := distinct(broken, func(i int) string { return fmt.Sprint(i) }); !slices.Equal(list, []string{"1"}) {
		t.Errorf("candidates %q", list)
	}
}

// A server that accepts connections but never answers does not keep the shell waiting.
func TestCompletionFaultySilentServer(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	var out, errs bytes.Buffer
	p := New(strings.NewReader(""), &out, &errs)
	root := &cobra.Command{Use: "ledgerd"}
	p.AddGlobalFlags(root)
	command := &cobra.Command{Use: "show", RunE: func(*cobra.Command, []string) error { return nil }}
	root.AddCommand(p.Takes(command, "ORG/REPO"))
	p.AddArguments(root)

	done := make(chan []cobra.Completion)
	go func() {
		root.SetArgs([]string{"__complete", "show", "--server", "http://" + listener.Addr().String(), "--token", "x", ""})
		root.SetOut(&out)
		root.SetErr(&errs)
		_ = root.ExecuteContext(t.Context())
		done <- nil
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("completion hangs")
	}
	if text := out.String(); strings.TrimSpace(text) != ":4" {
		t.Errorf("completed %q", text)
	}
}
