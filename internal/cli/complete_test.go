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
)

func TestArgumentsOf(t *testing.T) {
	for usage, want := range map[string]string{
		"list":                                   "",
		"show ORG/REPO [REV]":                    "ORG/REPO REV",
		"gate ORG[/REPO]":                        "ORG/REPO",
		"commit [ORG/REPO] [REV]":                "ORG/REPO REV",
		"attest ORG/REPO [flags] -- COMMAND ARG": "ORG/REPO",
		"deliveries ORG/REPO WEBHOOK [DELIVERY]": "ORG/REPO WEBHOOK DELIVERY",
	} {
		if got := argumentsOf(usage); strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", usage, got, want)
		}
	}
}

// A list of candidates is bounded, and an error ends it without a message.
func TestCandidatesAreBounded(t *testing.T) {
	endless := iter.Seq2[int, error](func(yield func(int, error) bool) {
		for i := 0; yield(i, nil); i++ {
		}
	})
	if list := named(endless, func(i int) string { return fmt.Sprint(i) }); len(list) != maxCompletions {
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
	if list := named(broken, func(i int) string { return fmt.Sprint(i) }); !slices.Equal(list, []string{"1"}) {
		t.Errorf("candidates %q", list)
	}
}

// A server that accepts connections but never answers does not keep the shell waiting.
func TestCompletionFaultySilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var out, errs bytes.Buffer
	p := New(strings.NewReader(""), &out, &errs)
	root := &cobra.Command{Use: "ledgerd"}
	p.AddGlobalFlags(root)
	command := &cobra.Command{Use: "show ORG/REPO", RunE: func(*cobra.Command, []string) error { return nil }}
	root.AddCommand(command)
	p.AddCompletion(root)

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
