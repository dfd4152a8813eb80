package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
)

// rules is a script that knows the rules of what may carry, and asks git alone. It learns each fact when the ledger
// does.
type rules struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

// newRules starts the script. objects is the objects folder of the repository.
func newRules(t *testing.T, objects string) *rules {
	testenv.Need(t, "python3")
	script := must.Get(filepath.Abs(filepath.Join("testdata", "may_carry.py")))(t)
	command := exec.Command("python3", script, objects)
	command.Stderr = os.Stderr
	r := &rules{t: t}
	r.in = must.Get(command.StdinPipe())(t)
	r.out = bufio.NewReader(must.Get(command.StdoutPipe())(t))
	must.OK(t, command.Start())
	t.Cleanup(func() {
		r.in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v", script, err)
		}
	})
	return r
}

// note gives the script a fact.
func (r *rules) note(words ...string) {
	r.t.Helper()
	_, err := fmt.Fprintln(r.in, strings.Join(words, " "))
	must.OK(r.t, err)
}

// ask is like note, and returns the answer.
func (r *rules) ask(words ...string) string {
	r.t.Helper()
	r.note(words...)
	return strings.TrimSpace(must.Get(r.out.ReadString('\n'))(r.t))
}

// A verdict is what a commit may get, or has.
type verdict struct {
	tests, reviews bool
	isClaimed      bool   // whether some of it needs a claim
	why            string // why something is missing, or "-"
}

// verdict asks the script about a commit.
func (r *rules) verdict(commit string) verdict {
	fields := strings.SplitN(r.ask("ask", commit), " ", 3)
	tests, reviews := fields[0], fields[1]
	return verdict{tests != "no", reviews != "no", tests == "claim" || reviews == "claim", fields[2]}
}

// uncovered asks the script why a commit that is shipped is not covered. It returns "" if it is.
func (r *rules) uncovered(commit string) string {
	r.t.Helper()
	return strings.TrimPrefix(r.ask("ship", commit), "covered")
}

// isMore reports whether a commit has something that it may not have.
func (v verdict) isMore(than verdict) bool {
	return v.tests && !than.tests || v.reviews && !than.reviews
}

// state returns the state that follows.
func (v verdict) state() ledger.State {
	switch {
	case v.tests && v.reviews:
		return ledger.Promotable
	case v.tests:
		return ledger.Attested
	}
	return ledger.Draft // or VALIDATING
}
