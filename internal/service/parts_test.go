package service

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/config"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// Parts start in order. If one does not start, those before it stop in reverse order, and no others.
func TestPartsStopInReverseOrder(t *testing.T) {
	broken, stuck := errors.New("broken"), errors.New("stuck")
	var steps []string
	step := func(name string, err error) part {
		return part{
			func(context.Context) error { steps = append(steps, "start "+name); return nil },
			func(s shutdown) error { steps = append(steps, "stop "+name+" "+s.timeout.String()); return err },
		}
	}
	failing := step("c", nil)
	failing.start = func(context.Context) error { return broken }
	parts := []part{step("a", nil), step("b", stuck), failing, step("d", nil)}

	err := startParts(t.Context(), parts)
	if !errors.Is(err, broken) || !errors.Is(err, stuck) {
		t.Errorf("startParts: %v, want the errors of the start and of the stop", err)
	}
	if want := []string{"start a", "start b", "stop b 0s", "stop a 0s"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}

	steps = nil
	err = stopParts([]part{parts[0], parts[1], {parts[0].start, nil}, parts[3]}, shutdown{timeout: time.Second})
	if !errors.Is(err, stuck) {
		t.Errorf("stopParts: %v, want the error of one part", err)
	}
	if want := []string{"stop d 1s", "stop b 1s", "stop a 1s"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
}

// A service that does not start leaves neither its address nor its database in use.
func TestFailedStartReleasesAll(t *testing.T) {
	address, err := testenv.FreeAddress()
	must.OK(t, err)
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()

	s := config.Default()
	s.Listen, s.Database = address, config.Database(filepath.Join(t.TempDir(), "ledger.db"))
	for name, change := range map[string]func(*config.Settings){
		"backups": func(s *config.Settings) { s.Backup.Folder = filepath.Join(t.TempDir(), "missing") },
		"metrics": func(s *config.Settings) { s.Metrics.Listen = taken.Addr().String() },
	} {
		bad := s
		change(&bad)
		if v, err := Start(t.Context(), bad, discardLog()); err == nil {
			t.Errorf("%s: the service starts", name)
			must.OK(t, v.Stop(0, time.Second))
		}
		v, err := Start(t.Context(), s, discardLog())
		if err != nil {
			t.Fatalf("after a failure of %s: %v", name, err)
		}
		must.OK(t, v.Stop(0, time.Second))
	}
}
