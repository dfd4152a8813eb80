package must_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
)

// A recorder is a test that records why it ended.
type recorder struct{ why string }

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) { r.end(fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) { r.end(fmt.Sprintf(format, args...)) }

func (r *recorder) end(why string) {
	r.why = why
	panic(r)
}

// why returns why a test ends; empty if it does not.
func why(test func(must.TB)) string {
	var r recorder
	func() {
		defer func() { _ = recover() }()
		test(&r)
	}()
	return r.why
}

// What a test relies on ends it if it fails, and only then.
func TestMust(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, []byte("text"), 0o600))

	for name, test := range map[string]struct {
		test func(must.TB)
		want string
	}{
		"an error":     {func(t must.TB) { must.OK(t, errors.New("full")) }, "full"},
		"no error":     {func(t must.TB) { must.OK(t, nil) }, ""},
		"no value":     {func(t must.TB) { must.Get("", errors.New("full"))(t) }, "full"},
		"no key":       {func(t must.TB) { must.PublicPEM(t, "x") }, "x509: unsupported public key type: string"},
		"no file":      {func(t must.TB) { must.Read(t, file+"x") }, "open " + file + "x: no such file or directory"},
		"a file":       {func(t must.TB) { must.Read(t, file) }, ""},
		"a true thing": {func(t must.TB) { must.Wait(t, "it", func() bool { return true }) }, ""},
	} {
		if got := why(test.test); got != test.want {
			t.Errorf("%s: the test ends with %q, want %q", name, got, test.want)
		}
	}
	if got := must.Get("text", nil)(t); got != "text" {
		t.Errorf("the value is %q", got)
	}
	if got := string(must.Read(t, file)); got != "text" {
		t.Errorf("the file has %q", got)
	}
}

func TestWaitEndsAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		got := why(func(t must.TB) { must.Wait(t, "rain", func() bool { return false }) })
		if want := "timeout after a minute: rain"; got != want {
			t.Errorf("the test ends with %q, want %q", got, want)
		}
		if waited := time.Since(begin); waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("it waited for %s", waited)
		}
	})
}
