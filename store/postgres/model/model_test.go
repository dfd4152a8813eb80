package model

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
)

// A size is what a model has of everything.
type size struct{ writers, events, readers, dispatchers, crashes, faults int }

func (s size) flags() []string {
	return []string{
		fmt.Sprint("-DWRITERS=", s.writers), fmt.Sprint("-DEVENTS=", s.events), fmt.Sprint("-DREADERS=", s.readers),
		fmt.Sprint("-DDISPATCHERS=", s.dispatchers), fmt.Sprint("-DCRASHES=", s.crashes), fmt.Sprint("-DFAULTS=", s.faults),
	}
}

// All parts together have too many states for more than the smallest numbers, so the feed and the
// outbox are also explored alone.
var (
	feed        = size{writers: 2, events: 4, readers: 2, crashes: 1}
	outbox      = size{writers: 1, events: 1, dispatchers: 2, crashes: 1, faults: 3}
	whole       = size{writers: 2, events: 2, readers: 1, dispatchers: 2, crashes: 1}
	smallFeed   = size{writers: 2, events: 3, readers: 1, crashes: 1}
	smallOutbox = size{writers: 1, events: 1, dispatchers: 2, crashes: 1, faults: 1}
)

func TestModelIsRight(t *testing.T) {
	testenv.Need(t, "spin", "gcc")
	model := read(t)
	var unreached []string
	for i, s := range []size{feed, outbox, whole} {
		r := explore(t, model, all, s.flags()...)
		t.Logf("%+v: %d states in %v", s, r.states, r.elapsed.Round(100*time.Millisecond))
		if len(r.violated) > 0 || r.states < 100_000 {
			t.Errorf("%+v: violated: %q, %d states, want none and at least 100000", s, r.violated, r.states)
		}
		r.mustBeExhaustive(t)

		if i == 0 {
			unreached = r.unreached
		}
		unreached = slices.DeleteFunc(unreached, func(s string) bool { return !slices.Contains(r.unreached, s) })
	}
	if len(unreached) > 0 {
		t.Errorf("the model has statements that are never executed:\n%s", strings.Join(unreached, "\n"))
	}
}

// Properties such as complete are evaluated when no process can act any more, so every run must
// reach that point.
func TestEveryRunEnds(t *testing.T) {
	testenv.From(t, testenv.Full, "explores millions of states")
	testenv.Need(t, "spin", "gcc")
	for _, s := range []size{smallFeed, smallOutbox} {
		r := explore(t, read(t), cycle, s.flags()...)
		if len(r.violated) > 0 {
			t.Errorf("%+v: violated: %q", s, r.violated)
		}
		r.mustBeExhaustive(t)
	}

	endless := edit(t, read(t), "fault; now++", "true; now++") // until it overflows
	if r := explore(t, endless, cycle, smallOutbox.flags()...); !slices.Contains(r.violated, "endless") {
		t.Errorf("a clock that never waits is not found, but only %q", r.violated)
	}
}

// bugs are put into the model by a switch, or by edits: pairs of old and new text.
var bugs = []struct {
	name     string
	size     size
	flag     string
	edits    []string
	violated string // properties that must be violated
}{
	{name: "no lock", size: smallFeed, flag: "-DNOLOCK", violated: "unique in_order complete"},
	{name: "the next number is read before the lock", size: smallFeed, flag: "-DEARLYREAD", violated: "unique complete"},
	{name: "numbers from a sequence", size: smallFeed, flag: "-DSEQUENCE", violated: "dense complete"},
	{name: "no lock on a claimed row", size: smallOutbox, flag: "-DNOCLAIMLOCK", violated: "one_lease"},

	{name: "the lock ends before the insert", size: smallFeed, violated: "unique complete", edits: []string{
		":: first = next_seq", ":: d_step { first = next_seq; org_lock = NOBODY }"}},
	{name: "a rollback keeps the next number", size: smallFeed, violated: "dense", edits: []string{
		":: first = next_seq", ":: d_step { first = next_seq; next_seq = next_seq + n }",
		"next_seq = next_seq + n; first = rows;", "first = rows;"}},
	{name: "a crash keeps the lock", size: smallFeed, violated: "stuck", edits: []string{
		"if :: org_lock == me -> org_lock = NOBODY :: else fi;\n\t\tbegun", "begun"}},
	{name: "2xx before the commit", size: smallFeed, violated: "kept", edits: []string{
		":: first = next_seq", ":: d_step { first = next_seq; check(kept, committed[first]) }"}},
	{name: "pages without order", size: smallFeed, violated: "in_order complete", edits: []string{
		"seq[i] == j &&", "seq[i] == newest - 1 - (j - cursor) &&"}},
	{name: "the cursor moves before the events are sent", size: smallFeed, violated: "complete", edits: []string{
		"page[size] = i; size++", "page[size] = i; size++; cursor = j + 1"}},
	{name: "the cursor moves too little", size: smallFeed, violated: "once in_order", edits: []string{
		"cursor = seq[i] + 1", "cursor = seq[i]"}},
	{name: "the cursor moves too far", size: smallFeed, violated: "complete", edits: []string{
		"cursor = seq[i] + 1", "cursor = newest"}},

	{name: "an event without a delivery", size: smallOutbox, violated: "delivered", edits: []string{
		"due_at[i] = now;", ""}},
	{name: "the delivery in another transaction", size: smallOutbox, violated: "delivered", edits: []string{
		"due_at[i] = now;", "", "check(kept, committed[i])", "due_at[i] = now"}},
	{name: "a claim takes no lease", size: smallOutbox, violated: "delivered", edits: []string{
		"due_at[e] = until; leased[e] = true;", "due_at[e] = 0;"}},
	{name: "a claim ignores leases", size: smallOutbox, violated: "one_lease", edits: []string{
		"due_at[x] > 0 && due_at[x] <= at", "due_at[x] > 0"}},
	{name: "a crash keeps the row lock", size: smallOutbox, violated: "delivered", edits: []string{
		"row_lock[e] == me -> row_lock[e] = NOBODY", "row_lock[e] == me"}},
	{name: "a failure ends any lease", size: outbox, violated: "one_lease", edits: []string{
		"!success && leased[e] && due_at[e] == until", "!success && leased[e]"}},
	{name: "a release ends any lease", size: outbox, violated: "one_lease", edits: []string{
		":: fault; goto record", ":: d_step { fault; due_at[e] = (leased[e] -> now : due_at[e]); leased[e] = false;" +
			"held[me].event = NOBODY }; goto done"}},
	{name: "a failure ends the delivery", size: smallOutbox, violated: "delivered", edits: []string{
		"== until -> due_at[e] = now;", "== until -> due_at[e] = 0;"}},
}

func TestModelFindsBugs(t *testing.T) {
	testenv.From(t, testenv.Full, "explores millions of states")
	testenv.Need(t, "spin", "gcc")
	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()
			flags := bug.size.flags()
			if bug.flag != "" {
				flags = append(flags, bug.flag)
			}
			r := explore(t, edit(t, read(t), bug.edits...), allSoon, flags...)
			t.Logf("violated: %q, %d states", r.violated, r.states)
			for _, property := range strings.Fields(bug.violated) {
				if !slices.Contains(r.violated, property) {
					t.Errorf("%s is not violated, but only %q", property, r.violated)
				}
			}
		})
	}
}

func read(t *testing.T) string {
	t.Helper()
	text := must.Read(t, "ledger.pml")
	return string(text)
}

// edit replaces texts. Each must occur in the model exactly once.
func edit(t *testing.T, model string, pairs ...string) string {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		if n := strings.Count(model, pair[0]); n != 1 {
			t.Fatalf("the model has %d times %q, want once", n, pair[0])
		}
		model = strings.Replace(model, pair[0], pair[1], 1)
	}
	return model
}

// A search is what Spin looks for: how its verifier is compiled and run.
type search struct{ compile, run []string }

var (
	// all finds all asserts that fail, and processes that are stuck.
	all = search{compile: []string{"-O1", "-DSAFETY"}, run: []string{"-c0"}}
	// allSoon is compiled sooner, but takes longer per state.
	allSoon = search{compile: []string{"-O0", "-DSAFETY"}, run: []string{"-c0"}}
	// cycle finds a run without an end.
	cycle = search{compile: []string{"-O0", "-DNP"}, run: []string{"-l"}}
)

// A result is what Spin found.
type result struct {
	output    string
	states    int
	violated  []string // each once: properties, stuck if a process waits forever, or endless
	unreached []string // statements that are never executed
	elapsed   time.Duration
}

// explore has Spin visit the states of a model.
func explore(t *testing.T, model string, s search, flags ...string) result {
	t.Helper()
	dir, start := t.TempDir(), time.Now()
	must.OK(t, os.WriteFile(filepath.Join(dir, "ledger.pml"), []byte(model), 0o600))
	run(t, dir, "spin", append(flags, "-a", "ledger.pml")...)
	run(t, dir, "gcc", slices.Concat(s.compile, []string{"-w", "-DCOLLAPSE", "-o", "pan", "pan.c"})...)
	output := run(t, dir, "./pan", append(s.run, "-m100000")...)

	r := result{output: output, unreached: unreached(output), elapsed: time.Since(start)}
	match := regexp.MustCompile(`(\S+) states, stored`).FindStringSubmatch(output)
	if match == nil {
		t.Fatalf("Spin gives no number of states:\n%s", output)
	}
	states := must.Get(strconv.ParseFloat(match[1], 64))(t)
	r.states = int(states)
	names := strings.NewReplacer("assertion violated ", "", "invalid end state", "stuck", "non-progress cycle", "endless")
	found := regexp.MustCompile(`(?m)^pan:\d+: (.+?) \(at depth`)
	for _, match := range found.FindAllStringSubmatch(output, -1) {
		if name := names.Replace(match[1]); !slices.Contains(r.violated, name) {
			r.violated = append(r.violated, name)
		}
	}
	return r
}

// mustBeExhaustive fails the test unless Spin has visited every state.
func (r result) mustBeExhaustive(t *testing.T) {
	t.Helper()
	limits := regexp.MustCompile(`(?i)max search depth too small|search not completed|out of memory|bit statespace`)
	if limit := limits.FindString(r.output); limit != "" || !strings.Contains(r.output, "Full statespace search") {
		t.Errorf("the search is not exhaustive: %s\n%s", limit, r.output)
	}
}

// unreached returns the statements that were never executed, except the ends of processes.
func unreached(output string) (statements []string) {
	place := regexp.MustCompile(`ledger.pml:\d+, state \d+`)
	_, lists, _ := strings.Cut(output, "unreached in ")
	for line := range strings.Lines(lists) {
		if s := place.FindString(line); s != "" && !strings.Contains(line, `"-end-"`) {
			statements = append(statements, s)
		}
	}
	return statements
}

// run runs a program and returns what it prints.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = dir
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, output)
	}
	return string(output)
}
