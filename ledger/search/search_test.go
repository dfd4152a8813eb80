package search_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/search"
)

const (
	sha    = "5d3d360b2f13b13a539311878916bf8208301cd6"
	digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	ulid   = "01M80KN46FEEQMHDDMW3XG40BH"
)

func parse(t *testing.T, text string) search.Query {
	t.Helper()
	q, err := search.Parse(text)
	must.OK(t, err)
	return q
}

func TestParseRefuses(t *testing.T) {
	for query, want := range map[string]string{
		"":                        "empty",
		" \t":                     "empty",
		strings.Repeat("x", 201):  "201 bytes: at most 200",
		"a\x00b":                  "control characters",
		"a\x1b[31m":               "control characters",
		"a\xff":                   "invalid UTF-8",
		"1 2 3 4 5 6 7 8 9 10 11": "11 words: at most 10",
	} {
		_, err := search.Parse(query)
		e, _ := err.(*ledger.Error)
		if e == nil || e.Code != ledger.CodeInvalidParameter || !strings.Contains(e.Detail, want) ||
			len(e.Fields) != 1 || e.Fields[0].Field != "q" {
			t.Errorf("%q: error %v, want %q of the field q", query, err, want)
		}
	}
	parse(t, strings.Repeat("x", search.MaxQuery))
	parse(t, "1 2 3 4 5 6 7 8 9 10")
	parse(t, "a\u00a0b\tc")
}

func TestWhatAQueryNames(t *testing.T) {
	for _, test := range []struct {
		query, commit, digest, id string
		exact                     bool
	}{
		{query: "5d3d36"},
		{query: "5D3D360", commit: "5d3d360"},
		{query: sha, commit: sha, exact: true},
		{query: " " + digest + " ", commit: digest, digest: "sha256:" + digest, exact: true},
		{query: "sha256:" + strings.ToUpper(digest), digest: "sha256:" + digest, exact: true},
		{query: "ghcr.io/acme/api@sha256:" + digest, digest: "sha256:" + digest, exact: true},
		{query: "sha256:e3b0c44", digest: "sha256:e3b0c44"},
		{query: "sha256:e3b0c4"},
		{query: "sha256:" + digest + "0"},
		{query: "md5:" + digest},
		{query: "sha512:" + digest, digest: "sha512:" + digest},
		{query: "att_" + ulid, id: "att_" + ulid, exact: true},
		{query: "ATT_" + strings.ToLower(ulid), id: "att_" + ulid, exact: true},
		{query: "whk_" + ulid, id: "whk_" + ulid, exact: true},
		{query: "tok_" + ulid},
		{query: "att_" + ulid[1:] + "U"},
		{query: "att_" + ulid[1:]},
	} {
		q := parse(t, test.query)
		got := q.Digest().String()
		if _, id := q.ID(); q.Commit() != test.commit || strings.Trim(got, ":") != test.digest || id != test.id ||
			q.IsExact() != test.exact {
			t.Errorf("%q: commit %q, digest %q, id %q, exact: %t", test.query, q.Commit(), got, id, q.IsExact())
		}
	}

	first, last := parse(t, "sha256:e3b0c442").Digest().Range()
	if len(first) != 32 || len(last) != 32 || first[3] != 0x42 || first[4] != 0 || last[3] != 0x42 || last[31] != 0xff {
		t.Errorf("range from %x to %x", first, last)
	}
	if first, last := parse(t, "sha256:e3b0c44").Digest().Range(); first[3] != 0x40 || last[3] != 0x4f {
		t.Errorf("range from %x to %x", first, last)
	}
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		query, text string
		want        search.Rank
	}{
		{"login", "login", search.Equal},
		{"LOGIN", "Login", search.Equal},
		{"login", "Login page", search.Prefix},
		{"login page", "Login page, again", search.Prefix},
		{"login", "fix login", search.WordStart},
		{"login", "feature/login", search.WordStart},
		{"page fix", "fix login page", search.WordStart},
		{"log", "catalog and login", search.WordStart},
		{"log", "catalog", search.Inside},
		{"log fix", "fix catalog", search.Inside},
		{"login fix", "login", search.No},
		{"straße", "STRASSE", search.Equal},
		{"café", "Cafe\u0301 page", search.Prefix},
		{"Ёлка", "новая ёлка", search.WordStart},
		{"%", "login", search.No},
		{"_", "login", search.No},
		{"100%", "now 100% faster", search.WordStart},
		{"*", "login", search.No},
		{"x", "", search.No},
	} {
		if got := parse(t, test.query).Match(test.text); got != test.want {
			t.Errorf("%q in %q: %d, want %d", test.query, test.text, got, test.want)
		}
	}
}

func TestMatchCommit(t *testing.T) {
	c := ledger.CommitSummary{Branch: "feature/login", Message: "Add a form",
		Author: ledger.Author{Name: "Ann Author", Email: "ann@example.com"}}
	for query, want := range map[string][2]search.Rank{
		"login":           {search.WordStart, search.No},
		"form":            {search.No, search.WordStart},
		"add a":           {search.No, search.Prefix},
		"ann@example.com": {search.No, search.Equal},
		"ann author":      {search.No, search.Equal},
		"ann form":        {search.No, search.Inside},
		"ann login":       {search.No, search.Inside},
		"ann logout":      {search.No, search.No},
		"f":               {search.Prefix, search.WordStart},
		"feature/login":   {search.Equal, search.No},
	} {
		if branch, commit := parse(t, query).MatchCommit(c); branch != want[0] || commit != want[1] {
			t.Errorf("%q: branch %d, commit %d, want %v", query, branch, commit, want)
		}
	}
}

// A commit matches as well as the best of its texts.
func TestMatchCommitByItsBestText(t *testing.T) {
	c := ledger.CommitSummary{Message: "fix: by ann", Author: ledger.Author{Name: "Ann", Email: "ann@example.com"}}
	if _, got := parse(t, "ann").MatchCommit(c); got != search.Equal {
		t.Errorf("rank %d, want %d", got, search.Equal)
	}
}

func TestRanked(t *testing.T) {
	hit := func(kind search.Kind, title string, rank search.Rank, order int64) search.Hit {
		return search.Hit{Type: kind, Title: title, Rank: rank, Order: order}
	}
	list, more := search.Ranked([]search.Hit{
		hit(search.Commit, "old", search.Inside, 1),
		hit(search.Commit, "new", search.Inside, 2),
		hit(search.Commit, "best", search.Prefix, 0),
		hit(search.Signer, "ci", search.Equal, 0),
		hit(search.Branch, "b", search.Prefix, 0),
	}, 2)
	var titles []string
	for _, h := range list {
		titles = append(titles, h.Title)
	}
	if want := []string{"ci", "best", "new", "b"}; !slices.Equal(titles, want) {
		t.Errorf("titles %q, want %q", titles, want)
	}
	if !slices.Equal(more, []search.Kind{search.Commit}) {
		t.Errorf("more of %q", more)
	}
	if list, more := search.Ranked(nil, 2); list == nil || more == nil || len(list)+len(more) != 0 {
		t.Errorf("%v, %v, want empty lists", list, more)
	}
}
