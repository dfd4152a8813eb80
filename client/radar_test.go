package client_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/client"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

// A list for one commit or branch reports truncation only for that one.
func TestTruncated(t *testing.T) {
	one := ledger.RadarCommit{SHA: strings.Repeat("a1", 20), Branch: "one"}
	two := ledger.RadarCommit{SHA: strings.Repeat("b2", 20), Branch: "two", OverlapsTruncated: true}
	three := ledger.RadarCommit{SHA: strings.Repeat("c3", 20), Branch: "three", OverlapsTruncated: true}
	pairs := []ledger.RadarPair{{Commit: three, Other: two}, {Commit: three, Other: one}, {Commit: two, Other: one}}

	for _, test := range []struct {
		filter client.OverlapFilter
		want   string
	}{
		{client.OverlapFilter{}, "three two"},
		{client.OverlapFilter{Level: radar.High}, "three two"},
		{client.OverlapFilter{Commit: "b2b2b2b"}, "two"},
		{client.OverlapFilter{Branch: "three"}, "three"},
		{client.OverlapFilter{Branch: "one"}, ""},
		{client.OverlapFilter{Commit: "b2b2b2b", Branch: "three"}, ""},
	} {
		var got []string
		for _, c := range test.filter.Truncated(pairs) {
			got = append(got, c.Branch)
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("%+v: %q, want %q", test.filter, s, test.want)
		}
	}
}

func TestRadar(t *testing.T) {
	b := newBackend(t)
	ctx := t.Context()
	shas := []string{strings.Repeat("a1", 20), strings.Repeat("b2", 20), strings.Repeat("c3", 20)}
	// Two commits overlap if they add the same path with different contents.
	adding := func(branch, path string) ledger.Registration {
		blob := fmt.Sprintf("%040x", len(branch))
		return ledger.Registration{
			Branch: branch, Changes: []radar.Change{{Path: path, Status: "A", Mode: "100644", Blob: blob}}}
	}
	push := func(sha string, r ledger.Registration) ledger.Commit {
		t.Helper()
		commit, _, err := b.admin.Register(ctx, "acme", "api", sha, r)
		must.OK(t, err)
		return commit
	}
	push(shas[0], adding("one", "cmd/new.go"))
	push(shas[1], adding("second", "cmd/other.go"))

	q := ledger.RadarQuery{Commit: shas[2], Registration: adding("three", "cmd/new.go")}
	got := must.Get(b.admin.PreviewOverlaps(ctx, "acme", "api", q))(t)
	if got.Level != radar.High || len(got.Overlaps) != 2 ||
		got.Overlaps[0].Other.SHA != shas[0] {
		t.Errorf("preview %+v", got)
	}
	if commit := push(shas[2], q.Registration); commit.Radar == nil || commit.Radar.Level != radar.High ||
		!commit.InFlight {
		t.Errorf("registered as %+v", commit)
	}

	for name, test := range map[string]struct {
		filter client.OverlapFilter
		want   string
	}{
		"all, strongest first": {client.OverlapFilter{}, "three+one HIGH, three+second LOW, second+one LOW"},
		"a level":              {client.OverlapFilter{Level: radar.High}, "three+one HIGH"},
		"a commit":             {client.OverlapFilter{Commit: shas[1][:8]}, "three+second LOW, second+one LOW"},
		"a branch and a level": {client.OverlapFilter{Branch: "one", Level: radar.Low}, "second+one LOW"},
	} {
		var got []string
		for p, err := range b.admin.Overlaps(ctx, "acme", "api", test.filter) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, fmt.Sprintf("%s+%s %s", p.Commit.Branch, p.Other.Branch, p.Level))
		}
		if s := strings.Join(got, ", "); s != test.want {
			t.Errorf("%s: %s, want %s", name, s, test.want)
		}
	}

	for range 2 {
		commit := must.Get(b.admin.Withdraw(ctx, "acme", "api", shas[0][:8]))(t)
		if commit.SHA != shas[0] || commit.InFlight {
			t.Errorf("withdrawn as %+v", commit)
		}
	}
	tips := must.Get(client.Collect(b.admin.Commits(ctx, "acme", "api", client.CommitFilter{InFlight: true}), 0))(t)
	if len(tips) != 2 || tips[0].SHA != shas[2] || tips[1].SHA != shas[1] {
		t.Errorf("in flight: %v", tips)
	}
	if _, err := b.admin.Withdraw(ctx, "acme", "api", strings.Repeat("d4", 20)); client.CodeOf(err) !=
		ledger.CodeNotFound {
		t.Errorf("unknown commit: %v", err)
	}
	if _, err := b.admin.PreviewOverlaps(ctx, "acme", "api", ledger.RadarQuery{Commit: "HEAD"}); client.CodeOf(err) !=
		ledger.CodeInvalidField {
		t.Errorf("invalid commit ID: %v", err)
	}
}
