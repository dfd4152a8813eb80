package lineage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

// history is a history of commits whose names are words: "b a" means that b has the parent a, and a word
// that is no commit of its own is not known. The commits are a day apart, in the order of the lines.
func history(lines ...string) Graph {
	nodes := make(map[string]Node)
	for i, line := range lines {
		words := strings.Fields(line)
		nodes[words[0]] = Node{Parents: words[1:], At: ledger.Time(i+1) * 86_400_000}
	}
	return func(sha string) (Node, bool, error) {
		n, ok := nodes[sha]
		return n, ok, nil
	}
}

func TestBetween(t *testing.T) {
	for name, test := range map[string]struct {
		history    []string
		base, head string
		want       string // "" if not known
	}{
		"a branch":                           {[]string{"m0", "t1 m0", "t2 t1"}, "m0", "t2", "t2 t1"},
		"the head alone":                     {[]string{"m0", "t1 m0"}, "m0", "t1", "t1"},
		"nothing":                            {[]string{"m0"}, "m0", "m0", "-"},
		"the base need not be known":         {[]string{"t1 m0", "t2 t1"}, "m0", "t2", "t2 t1"},
		"no ancestor":                        {[]string{"m0", "m1 m0", "t1 m0"}, "m1", "t1", ""},
		"the base is above":                  {[]string{"m0", "t1 m0"}, "t1", "m0", ""},
		"a commit between is not known":      {[]string{"m0", "t3 t2", "t1 m0"}, "m0", "t3", ""},
		"the head is not known":              {[]string{"m0"}, "m0", "t1", ""},
		"the mainline came to the branch":    {[]string{"m0", "t1 m0", "m1 m0", "u t1 m1", "t2 u"}, "m1", "t2", "t2 u t1"},
		"before the mainline came":           {[]string{"m0", "t1 m0", "m1 m0", "u t1 m1"}, "m0", "u", "u t1 m1"},
		"an old part is known by its name":   {[]string{"t1 m0", "m1 m0", "u t1 m1"}, "m1", "u", "u t1"},
		"an old part that nobody else names": {[]string{"t1 x", "m1 m0", "u t1 m1"}, "m1", "u", ""},
		"two branches came together":         {[]string{"m0", "t1 m0", "s1 m0", "t2 t1 s1"}, "m0", "t2", "t2 t1 s1"},
	} {
		t.Run(name, func(t *testing.T) {
			list, known, err := Between(history(test.history...), test.base, test.head)
			must.OK(t, err)
			got := strings.Join(list, " ")
			if known && got == "" {
				got = "-"
			}
			if !known {
				got = ""
			}
			if got != test.want {
				t.Errorf("%s..%s: %q, want %q", test.base, test.head, got, test.want)
			}
		})
	}
}

func TestDelivery(t *testing.T) {
	for name, test := range map[string]struct {
		history []string
		ran     string
		head    string
		want    string // a commit that is not known has a "?"
	}{
		"the next commit":                   {[]string{"m0", "m1 m0"}, "m0", "m1", "m1"},
		"several":                           {[]string{"m0", "m1 m0", "m2 m1"}, "m0", "m2", "m2 m1"},
		"what runs, again":                  {[]string{"m0", "m1 m0"}, "m1", "m1", "m1"},
		"an older commit that ran":          {[]string{"m0", "m1 m0", "m2 m1"}, "m0 m2", "m0", "m0"},
		"an older commit that never ran":    {[]string{"m0", "m1 m0", "m2 m1", "m3 m2"}, "m0 m3", "m2", "m2 m1"},
		"a branch that was merged":          {[]string{"m0", "t1 m0", "m1 m0", "m2 m1 t1"}, "m0", "m2", "m2 m1 t1"},
		"a hotfix of what ran":              {[]string{"m0", "m1 m0", "h1 m0", "h2 h1"}, "m0 m1", "h2", "h2 h1"},
		"a hotfix of what never ran":        {[]string{"m0", "m1 m0", "m2 m1", "h m1"}, "m0 m2", "h", "h m1"},
		"after a hotfix, the mainline":      {[]string{"m0", "m1 m0", "h1 m0", "m2 m1"}, "m0 h1", "m2", "m2 m1"},
		"a merge of two releases":           {[]string{"m0", "m1 m0", "h1 m0", "h2 h1", "m2 m1 h2"}, "m1 h1", "m2", "m2 h2"},
		"nothing runs":                      {[]string{"m0", "m1 m0"}, "", "m1", "m1 m0"},
		"a parent is not known":             {[]string{"m1 m0", "m2 m1"}, "", "m2", "m2 m1 m0?"},
		"the object of what runs is not":    {[]string{"m1 m0", "m2 m1"}, "m0", "m2", "m2 m1"},
		"what runs is in another place":     {[]string{"m1 m0", "m2 m1"}, "x", "m2", "m2 m1 m0?"},
		"the head is not known":             {[]string{"m0"}, "m0", "m1", "m1?"},
		"an unrelated history":              {[]string{"x0", "x1 x0", "m0", "m1 m0"}, "x1", "m1", "m1 m0"},
		"a parent below what runs comes":    {[]string{"m0", "m1 m0", "t1 m0", "m2 m1", "u m2 t1"}, "m2", "u", "u t1"},
		"what runs is found on a long way":  {[]string{"m0", "m1 m0", "a m1", "b a", "c b m0"}, "m1", "c", "c b a"},
		"what runs is the younger by clock": {[]string{"m1 m0", "m2 m1", "m0"}, "m0", "m2", "m2 m1"},
	} {
		t.Run(name, func(t *testing.T) {
			ran := make(map[string]bool)
			for sha := range strings.FieldsSeq(test.ran) {
				ran[sha] = true
			}

			list, complete, err := Delivery(history(test.history...), test.head, ran)
			must.OK(t, err)
			var got []string
			for _, c := range list {
				if !c.Known {
					c.SHA += "?"
				}
				got = append(got, c.SHA)
			}

			if !complete || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(strings.FieldsSeq(test.want))) {
				t.Errorf("%s where %s ran: %q, %t, want %q", test.head, test.ran, got, complete, test.want)
			}
			if list[0].SHA != test.head {
				t.Errorf("the first is %s", list[0].SHA)
			}
		})
	}
}

func TestMergeBase(t *testing.T) {
	for name, test := range map[string]struct {
		history     []string
		head, other string
		want        string // empty for no merge base
	}{
		"a branch":                        {[]string{"m0", "t1 m0", "m1 m0"}, "t1", "m1", "m0"},
		"the mainline has not moved":      {[]string{"m0", "t1 m0", "t2 t1"}, "t2", "m0", "m0"},
		"the mainline contains it":        {[]string{"m0", "t1 m0", "m1 m0 t1"}, "t1", "m1", ""},
		"the mainline came to the branch": {[]string{"m0", "t1 m0", "m1 m0", "u t1 m1", "m2 m1"}, "u", "m2", "m1"},
		"it came twice": {[]string{"m0", "t1 m0", "m1 m0", "u t1 m1", "m2 m1", "v u m2", "m3 m2"},
			"v", "m3", "m2"},
		"a second branch came, too": {[]string{"m0", "a m0", "b m0", "t a b", "m1 m0 a", "m2 m1 b"},
			"t", "m2", ""},
		"nothing in common":             {[]string{"m0", "t1"}, "t1", "m0", ""},
		"a commit between is not known": {[]string{"m0", "t2 t1", "m1 m0"}, "t2", "m1", ""},
		"the mainline is not known":     {[]string{"m0", "t1 m0"}, "t1", "m9", ""},
		"the base is not known":         {[]string{"t1 m0", "m1 m0"}, "t1", "m1", "m0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := history(test.history...)
			got, list, err := MergeBase(g, test.head, test.other)
			if err != nil || got != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if want, _, _ := Between(g, test.want, test.head); got != "" && !slices.Equal(list, want) {
				t.Errorf("since then %q, want %q", list, want)
			}
		})
	}
}

func TestAhead(t *testing.T) {
	for name, test := range map[string]struct {
		history      []string
		head, others string
		want         string
	}{
		"a branch":                    {[]string{"m0", "t1 m0", "m1 m0", "t2 t1"}, "t2", "m1", "t2 t1"},
		"a stacked branch":            {[]string{"m0", "a m0", "m1 m0", "b a"}, "b", "m1", "b a"},
		"one below that was merged":   {[]string{"m0", "a m0", "m1 m0 a", "b a"}, "b", "m1", "b"},
		"one of several others":       {[]string{"m0", "a m0", "m1 m0", "b a"}, "b", "m1 a", "b"},
		"beyond what is known":        {[]string{"m0", "m1 m0", "b a"}, "b", "m1", "b a"},
		"the others contain the head": {[]string{"m0", "t m0", "m1 m0 t"}, "t", "m1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := Ahead(history(test.history...), test.head, strings.Fields(test.others)...)
			if got := strings.Join(list, " "); err != nil || got != test.want {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// It is sure that a commit is no ancestor once the whole history of the other one is known.
func TestIsAncestor(t *testing.T) {
	g := history("m0", "m1 m0", "t1 m0", "u t1 x")
	for _, test := range []struct {
		a, b     string
		is, sure bool
	}{
		{"m0", "m1", true, true}, {"m1", "m1", true, true}, {"m1", "t1", false, true}, {"m1", "m0", false, true},
		{"m1", "u", false, false}, {"m0", "u", true, true}, {"x", "u", true, true}, {"m0", "unknown", false, false},
	} {
		is, sure, err := IsAncestor(g, test.a, test.b)
		if is != test.is || sure != test.sure || err != nil {
			t.Errorf("%s of %s: %t, %t, %v, want %t, %t", test.a, test.b, is, sure, err, test.is, test.sure)
		}
	}
}

func TestIsFirstParent(t *testing.T) {
	g := history("m0", "m1 m0", "x", "m2 m1 x")
	for _, test := range []struct {
		a, b string
		n    int
		want bool
	}{
		{"m1", "m2", 1, true}, {"m0", "m2", 2, true}, {"m0", "m2", 1, false}, {"x", "m2", 9, false},
		{"m2", "m2", 9, false}, {"m2", "unknown", 9, false},
	} {
		got, err := IsFirstParent(g, test.a, test.b, test.n)
		if err != nil || got != test.want {
			t.Errorf("%s of %s within %d: %t, %v, want %t", test.a, test.b, test.n, got, err, test.want)
		}
	}
}

// A question visits a bounded part of a long history, and is then answered with no.
func TestQuestionsAreBounded(t *testing.T) {
	asked := 0
	endless := func(sha string) (Node, bool, error) {
		asked++
		return Node{Parents: []string{fmt.Sprint(asked)}, At: ledger.Time(1_000_000 - asked)}, true, nil
	}
	if is, sure, err := IsAncestor(endless, "never", "head"); is || sure || err != nil || asked > MaxCommits+2 {
		t.Errorf("%t, %t, %v after %d commits", is, sure, err, asked)
	}
	asked = 0
	if _, known, err := Between(endless, "base", "head"); known || err != nil || asked > MaxCommits+3 {
		t.Errorf("%t, %v after %d commits", known, err, asked)
	}
	asked = 0
	if _, complete, err := Delivery(endless, "head", nil); complete || err != nil || asked > 2*MaxShipped+3 {
		t.Errorf("%t, %v after %d commits", complete, err, asked)
	}
}

// Commits that are much older than the one that is looked for are not visited.
func TestIsAncestorLeavesOutOlderCommits(t *testing.T) {
	asked := 0
	const week = 7 * 86_400_000
	g := func(sha string) (Node, bool, error) {
		if sha == "wanted" {
			return Node{At: 5000 * week}, true, nil
		}
		asked++
		return Node{Parents: []string{fmt.Sprint(asked)}, At: ledger.Time(6000-asked) * week}, true, nil
	}
	if is, sure, err := IsAncestor(g, "wanted", "head"); is || !sure || err != nil || asked > 1100 {
		t.Errorf("%t, %t, %v after %d commits", is, sure, err, asked)
	}
}

func TestAnErrorOfTheGraphIsReturned(t *testing.T) {
	broken := errors.New("the disk is gone")
	g := func(sha string) (Node, bool, error) {
		if sha == "m0" {
			return Node{}, false, broken
		}
		return Node{Parents: []string{"m0"}}, true, nil
	}
	_, _, err1 := IsAncestor(g, "a", "t1")
	_, err2 := IsFirstParent(g, "a", "t1", 9)
	_, _, err3 := Between(g, "a", "t1")
	_, _, err4 := MergeBase(g, "t1", "a")
	_, err5 := Ahead(g, "t1", "a")
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	}
}

// In random histories, with any times and gaps, what is said to lie between is all that does, or more: nobody who wrote
// any of it is left out. Without gaps and with times that grow, it is exactly that.
func TestBetweenAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(t, "commits")
		regular := rapid.Bool().Draw(t, "regular")
		pace := rapid.IntRange(1, n).Draw(t, "commits of a second")
		nodes := make(map[string]Node)
		for i := range n {
			node := Node{At: ledger.Time(1 + i/pace)}
			if !regular {
				node.At = ledger.Time(rapid.IntRange(0, n).Draw(t, "time"))
			}
			for range rapid.IntRange(0, min(i, 2)).Draw(t, "parents") {
				parent := fmt.Sprint(rapid.IntRange(0, i-1).Draw(t, "parent"))
				if !slices.Contains(node.Parents, parent) {
					node.Parents = append(node.Parents, parent)
				}
			}
			nodes[fmt.Sprint(i)] = node
		}
		gap := ""
		if !regular {
			gap = fmt.Sprint(rapid.IntRange(0, n).Draw(t, "gap"))
		}
		g := func(sha string) (Node, bool, error) {
			if sha == gap {
				return Node{}, false, nil
			}
			return nodes[sha], true, nil
		}
		base, head := fmt.Sprint(rapid.IntRange(0, n-1).Draw(t, "base")), fmt.Sprint(rapid.IntRange(0, n-1).Draw(t, "head"))

		ofBase, ofHead := reached(nodes, base), reached(nodes, head)
		if is, _, err := IsAncestor(g, base, head); err != nil || is && !ofHead[base] || regular && is != ofHead[base] {
			t.Errorf("%s is an ancestor of %s: %t, %v in %v", base, head, is, err, nodes)
		}
		if b, since, err := MergeBase(g, head, base); err != nil || b != "" && !(ofHead[b] && ofBase[b]) ||
			regular && b != modelBase(nodes, ofHead, ofBase) && !ofBase[head] {
			t.Errorf("merge base of %s and %s: %q, %v in %v", head, base, b, err, nodes)
		} else if b != "" {
			for sha := range ofHead {
				if !reached(nodes, b)[sha] && !slices.Contains(since, sha) {
					t.Errorf("%s..%s: %v lacks %s, in %v", b, head, since, sha, nodes)
				}
			}
		}
		if !ofHead[gap] {
			checkDelivery(t, g, nodes, base, head, regular)
		}
		list, known, err := Between(g, base, head)
		if err != nil || known && !ofHead[base] || regular && known != ofHead[base] {
			t.Fatalf("%s..%s: known %t, %v in %v", base, head, known, err, nodes)
		}
		if !known {
			return
		}
		for _, sha := range slices.Sorted(maps.Keys(ofHead)) {
			between, listed := !ofBase[sha], slices.Contains(list, sha)
			if between && !listed || regular && between != listed {
				t.Errorf("%s..%s: %v, and %s lies between: %t, in %v", base, head, list, sha, between, nodes)
			}
		}
	})
}

// checkDelivery compares what a deployment of a commit ships with a model.
func checkDelivery(t *rapid.T, g Graph, nodes map[string]Node, base, head string, regular bool) {
	shipped, complete, err := Delivery(g, head, map[string]bool{base: true})
	if err != nil || !complete {
		t.Fatalf("%s where %s ran: %t, %v", head, base, complete, err)
	}
	ofBase := reached(nodes, base)
	for _, sha := range slices.Sorted(maps.Keys(reached(nodes, head))) {
		ships := sha == head || !ofBase[sha] || !reached(nodes, head)[base]
		listed := slices.ContainsFunc(shipped, func(s Shipped) bool { return s.SHA == sha })
		if ships && !listed || regular && ships != listed {
			t.Errorf("%s where %s ran: %v, and %s is shipped: %t, in %v", head, base, shipped, sha, ships, nodes)
		}
	}
}

// modelBase returns the common ancestor that has all others, or "".
func modelBase(nodes map[string]Node, ofHead, ofBase map[string]bool) string {
	for candidate := range ofHead {
		isBase := ofBase[candidate]
		for sha := range ofHead {
			isBase = isBase && (!ofBase[sha] || reached(nodes, candidate)[sha])
		}
		if isBase {
			return candidate
		}
	}
	return ""
}

// reached returns a commit with all its ancestors.
func reached(nodes map[string]Node, sha string) map[string]bool {
	found := map[string]bool{sha: true}
	for _, parent := range nodes[sha].Parents {
		maps.Copy(found, reached(nodes, parent))
	}
	return found
}
