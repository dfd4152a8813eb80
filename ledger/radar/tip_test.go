package radar

import "testing"

func TestRelated(t *testing.T) {
	tip := func(sha, branch string, ancestors ...string) Tip {
		return Tip{SHA: sha, Branch: branch, Base: "base", Ancestors: ancestors}
	}

	for name, test := range map[string]struct {
		a, b            Tip
		related, shares bool
	}{
		"two branches":             {tip("a", "x"), tip("b", "y"), false, false},
		"the same commit":          {tip("a", "x"), tip("a", "y"), true, false},
		"the same branch":          {tip("a", "x"), tip("b", "x"), true, false},
		"both without a branch":    {tip("a", ""), tip("b", ""), false, false},
		"an ancestor":              {tip("a", "x"), tip("b", "y", "a"), true, false},
		"a parent":                 {tip("a", "x"), Tip{SHA: "b", Parents: []string{"p", "a"}}, true, false},
		"the base":                 {tip("a", "x"), Tip{SHA: "b", Base: "a"}, true, false},
		"a common unmerged commit": {tip("a", "x", "c"), tip("b", "y", "d", "c"), false, true},
		"the base as an ancestor":  {tip("a", "x", "base"), tip("b", "y", "base"), false, false},
		"the other's base as an ancestor": {tip("a", "x", "c"), Tip{SHA: "b", Base: "c", Ancestors: []string{"c"}}, false,
			false},
		"no common ancestor": {tip("a", "x", "c"), tip("b", "y", "d"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]Tip{{test.a, test.b}, {test.b, test.a}} {
				if got := Related(pair[0], pair[1]); got != test.related {
					t.Errorf("Related = %t, want %t", got, test.related)
				}
				if got := SharesUnmerged(pair[0], pair[1]); got != test.shares {
					t.Errorf("SharesUnmerged = %t, want %t", got, test.shares)
				}
			}
		})
	}
}
