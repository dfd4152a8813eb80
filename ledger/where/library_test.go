package where

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

// library lists the functions that expressions may call, with the numbers of their
// arguments. Before one is added, such as by a new version of CEL: does it read a clock, a
// file or anything else than its arguments, and does it cost what it takes?
const library = `!_ 1, -_ 1, @in 2, @not_strictly_false 1, _!=_ 2, _%_ 2, _&&_ 2, _*_ 2, _+_ 2, _-_ 2, _/_ 2, _<=_ 2,
_<_ 2, _==_ 2, _>=_ 2, _>_ 2, _?_:_ 3, _[_] 2, __not_strictly_false__ 1, _in_ 2, _||_ 2, bool 1,
bytes 1, contains 2, double 1, duration 1, dyn 1, endsWith 2, getDate 1 2, getDayOfMonth 1 2,
getDayOfWeek 1 2, getDayOfYear 1 2, getFullYear 1 2, getHours 1 2, getMilliseconds 1 2,
getMinutes 1 2, getMonth 1 2, getSeconds 1 2, in 2, int 1, matches 2, size 1, startsWith 2,
string 1, timestamp 1, type 1, uint 1`

// A function without arguments could only read a clock or the machine, or be constant.
func TestNoFunctionReadsAClock(t *testing.T) {
	env, err := newEnv(patterns{})
	must.OK(t, err)
	var list []string
	for name, f := range env.Functions() {
		counts := make(map[int]bool)
		for _, o := range f.OverloadDecls() {
			counts[len(o.ArgTypes())] = true
		}
		if counts[0] {
			t.Errorf("%s has no arguments", name)
		}
		list = append(list, name+" "+strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(counts))), "[]"))
	}
	slices.Sort(list)
	want := strings.Split(strings.ReplaceAll(library, ",\n", ", "), ", ")
	slices.Sort(want)
	if !slices.Equal(list, want) {
		t.Errorf("expressions may call\n%v, want\n%v", list, want)
	}

	for _, expression := range []string{
		`now() > timestamp("2026-11-20T00:00:00Z")`, `timestamp.now() > timestamp("2026-11-20T00:00:00Z")`,
		`timestamp() > timestamp("2026-11-20T00:00:00Z")`, `today() == "x"`, `math.rand() > 1`, `env("HOME") == ""`,
	} {
		if _, err := Compile(expression); err == nil {
			t.Errorf("%s compiles", expression)
		}
	}
}
