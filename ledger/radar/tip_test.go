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
		"two branches":                   {tip("a", "x"), tip("b", "y"), false, false},
		"one commit":                     {tip("a", "x"), tip("a", "y"), true, false},
		"one branch":                     {tip("a", "x"), tip("b", "x"), true, false},
		"no branch is not one branch":    {tip("a", ""), tip("b", ""), false, false},
		"an ancestor":                    {tip("a", "x"), tip("b", "y", "a"), true, false},
		"a parent":                       {tip("a", "x"), Tip{SHA: "b", Parents: []string{"p", "a"}}, true, false},
		"the base":                       {tip("a", "x"), Tip{SHA: "b", Base: "a"}, true, false},
		"a common unmerged commit":       {tip("a", "x", "c"), tip("b", "y", "d", "c"), false, true},
		"the base is no unmerged commit": {tip("a", "x", "base"), tip("b", "y", "base"), false, false},
		"nor is that of the other": {tip("a", "x", "c"), Tip{SHA: "b", Base: "c", Ancestors: []string{"c"}}, false,
			false},
		"ancestors of which none is common": {tip("a", "x", "c"), tip("b", "y", "d"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]Tip{{test.a, test.b}, {test.b, test.a}} {
				if got := Related(pair[0], pair[1]); got != test.related {
					t.Errorf("related: %t", got)
				}
				if got := SharesUnmerged(pair[0], pair[1]); got != test.shares {
					t.Errorf("shares: %t", got)
				}
			}
		})
	}
}
