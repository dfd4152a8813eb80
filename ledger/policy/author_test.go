package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/identity"
)

// Eve, whom the org knows by an address and by her logins, reviews a commit that names its
// author in the ways in which git and the forges spell her.
func TestAuthorsReviewThemselves(t *testing.T) {
	const requirement = `{"state":"PROMOTABLE","predicate":"review:*","exclude_author":`
	known := []string{"eve@acme.example", "github:eve", "gitlab:eve"} // by which a signer is known
	ann := ledger.Author{Name: "Ann", Email: "ann@acme.example"}

	for spelling, author := range map[string]ledger.Author{
		"her address":              {Name: "E", Email: "eve@acme.example"},
		"in another case":          {Name: "E", Email: "Eve@Acme.Example"},
		"GitHub's no-reply":        {Name: "E", Email: "123+eve@users.noreply.github.com"},
		"GitHub's old no-reply":    {Name: "E", Email: "eve@users.noreply.github.com"},
		"GitLab's no-reply":        {Name: "E", Email: "123-eve@users.noreply.gitlab.com"},
		"an address with plus tag": {Name: "E", Email: "eve+work@acme.example"},
	} {
		for _, rule := range []string{`true`, `"proven"`, `"known"`} {
			for role, authors := range map[string][]ledger.Author{
				"the author": {author}, "a co-author": {ann, author},
			} {
				f := attested(signed("cn=reviewer-7,ou=dev,o=acme", "review:code", ledger.Pass))
				f.Evidence[0].Person, f.Proven, f.Authors = 7, true, authors
				f.KnownAuthors = []string{"ann"}
				for _, name := range identity.AuthorNames(authors) { // as the store finds people by their names
					if slices.Contains(known, name) {
						f.AuthorPeople, f.KnownAuthors = []int64{7}, append(f.KnownAuthors, name)
					}
				}
				got := mustParse(t, requirement+rule+"}").Derive(f, policyNow).Requirements[0]
				if got.Met || !strings.Contains(got.Reason, "by the commit's author") {
					t.Errorf("%s as %s, by %s: %+v", spelling, role, rule, got)
				}
			}
		}
	}
}

// By the rule "known", the review of a commit counts only if the org knows all who wrote it.
func TestKnownAuthors(t *testing.T) {
	ann := ledger.Author{Name: "Ann", Email: "ann@acme.example"}
	eve := ledger.Author{Name: "Eve", Email: "eve@home.example"}
	forge := ledger.Author{Name: "GitHub", Email: "noreply@github.com"}
	bot := ledger.Author{Name: "dependabot[bot]", Email: "49699333+dependabot[bot]@users.noreply.github.com"}
	const strange = "the org knows nobody of this name: "
	for name, test := range map[string]struct {
		change func(f *Facts)
		met    bool
		reason string // a part of it
	}{
		"by a signer": {func(f *Facts) {}, true, "met by " + bob},
		"by a signer with a plus tag": {func(f *Facts) {
			f.Authors = []ledger.Author{{Name: "A", Email: "ann+x@acme.example"}}
		}, true, ""},
		"not proven": {func(f *Facts) { f.Proven = false }, false, "the commit's author is not proven"},
		"nobody":     {func(f *Facts) { f.Authors = nil }, false, "its object names none"},
		"not registered": {func(f *Facts) { f.Authors, f.Proven = nil, false }, false,
			"unknown (to register it"},
		"by a stranger": {func(f *Facts) { f.Authors = []ledger.Author{eve} }, false,
			strange + `"Eve <eve@home.example>"`},
		"with a stranger": {func(f *Facts) { f.Authors = append(f.Authors, eve) }, false,
			strange + `"Eve <eve@home.example>"`},
		"with an unnamed author": {func(f *Facts) { f.Authors = append(f.Authors, ledger.Author{Name: "-", Email: "-"}) },
			false, strange + `"- <->"`},
		"by an unnamed author": {func(f *Facts) { f.Authors = []ledger.Author{{Name: "-", Email: "-"}} }, false,
			"the commit's author is unknown: its object names none"},
		"committed by the forge": {func(f *Facts) { f.Authors = append(f.Authors, forge) }, true, ""},
		"by the forge alone": {func(f *Facts) { f.Authors = []ledger.Author{forge} }, false,
			strange + `"GitHub <noreply@github.com>"`},
		"by the forge as the author": {func(f *Facts) { f.Authors = []ledger.Author{forge, ann} }, false,
			strange + `"GitHub <noreply@github.com>"`},
		"with a co-author of the forge's address": {func(f *Facts) { f.Authors = []ledger.Author{ann, forge, forge} }, false,
			strange + `"GitHub <noreply@github.com>"`},
		"with an author without a name": {func(f *Facts) { f.Authors = append(f.Authors, ledger.Author{}) }, false,
			strange + "(no name)"},
		"with an author without an address": {func(f *Facts) { f.Authors = append(f.Authors, ledger.Author{Name: "@eve"}) },
			false, strange + `"@eve" (`},
		"by an unknown bot": {func(f *Facts) { f.Authors = []ledger.Author{bot, forge} }, false,
			strange + `"dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>"`},
		"by a bot with an identity": {func(f *Facts) {
			f.Authors, f.KnownAuthors = []ledger.Author{bot, forge}, []string{"github:dependabot[bot]"}
		}, true, ""},
		"by a bot with a name like that of another": {func(f *Facts) {
			f.Authors, f.KnownAuthors = []ledger.Author{{Name: "x", Email: "dependabotbot@users.noreply.github.com"}, forge},
				[]string{"github:dependabot[bot]"}
		}, false, strange},
		"signed with a key of a signer": {func(f *Facts) {
			f.SigningKeys, f.KnownAuthors = []string{"ab12"}, append(f.KnownAuthors, "ab12")
		}, true, ""},
		"signed with an unknown key": {func(f *Facts) { f.SigningKeys = []string{"ab12"} }, false,
			"the org does not know the key that signed the commit: ab12"},
	} {
		f := attested(signed(bob, "review:code", ledger.Pass))
		f.Authors, f.KnownAuthors, f.Proven = []ledger.Author{ann}, []string{"ann", "ann@acme.example"}, true
		test.change(&f)
		c := mustParse(t, `{"state":"PROMOTABLE","predicate":"review:*","exclude_author":"known"}`)
		got := c.Derive(f, policyNow).Requirements[0]
		if got.Met != test.met || !strings.Contains(got.Reason, test.reason) {
			t.Errorf("%s: met %t, %s", name, got.Met, got.Reason)
		}
	}
}

// By the other rules, an author whom the org does not know changes only the reason.
func TestStrangersAreNamed(t *testing.T) {
	for _, rule := range []string{"true", `"proven"`} {
		f := attested(signed(bob, "review:code", ledger.Pass))
		f.Proven, f.SigningKeys, f.KnownAuthors = true, []string{"ab12"}, nil
		got := mustParse(t, `{"state":"PROMOTABLE","predicate":"review:*","exclude_author":`+rule+`}`).Derive(f, policyNow)
		want := "met by " + bob + `; the org knows nobody of this name: "Alice <alice@acme.org>" ` +
			"(if it is a signer's, add it: ledgerd identity update, or identity add of a key with the signer's DN)"
		if r := got.Requirements[0]; !r.Met || r.Reason != want {
			t.Errorf("%s: met %t, %s\nwant %s", rule, r.Met, r.Reason, want)
		}
	}
}
