package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/store"
)

func TestFiles(t *testing.T) {
	for _, test := range []struct {
		connections int
		level       Level
		text        string
	}{
		{999, Warning, "at most 999 connections"},
		{1000, OK, "enough for 1000 connections"},
	} {
		var e examination
		e.files(test.connections)
		if len(e.findings) != 1 {
			t.Fatalf("%d connections: %d findings, want 1", test.connections, len(e.findings))
		}
		if f := e.findings[0]; f.Check != "files" || f.Level != test.level || !strings.Contains(f.Text, test.text) {
			t.Errorf("%d connections: %+v, want %s with %q", test.connections, f, test.level, test.text)
		}
	}
}

// What fails in the background is a problem, and what had waited for long at the last record a warning.
func TestBacklog(t *testing.T) {
	last := ledger.TimeOf(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	e := examination{}
	e.backlog(store.Glance{Last: last, Backlog: []store.Backlog{
		{Org: "acme", Task: "settle", Jobs: 2, Oldest: last.Add(-time.Hour)},
		{Org: "acme", Task: "expire", Jobs: 3, Oldest: last.Add(-2 * time.Hour)},
		{Org: "globex", Task: "settle", Jobs: 5, Failing: 1, Oldest: last, Error: "a contract is missing"},
		{Org: "globex", Task: "expire", Jobs: 1, Oldest: last.Add(time.Hour)},
		{Org: "globex", Task: "map", Jobs: 1}, // since when is not known
	}})

	var got []string
	for _, f := range e.findings {
		got = append(got, string(f.Level)+" "+f.Check+": "+f.Text)
	}
	want := []string{
		"warning background: the task expire has waited in acme for 2h0m0s (is a server running?)",
		"problem background: the task settle fails in globex, and is tried again (1 of its jobs): a contract is missing",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A claim of an earlier release is listed with its commits, and with the command that ends it.
func TestClaimText(t *testing.T) {
	sha := func(digit string) string { return strings.Repeat(digit, 40) }
	got := claimText(store.StackedClaim{
		Org: "acme", Repo: "api", Commit: sha("1"), Unmerged: sha("3"), Branch: "topic", IdentityID: "idn_1",
		Claim: ledger.MergeClaim{Source: sha("2"), Attestation: "att_1", Identity: "cn=queue,o=acme",
			RecordedAt: ledger.TimeOf(time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC))},
	})
	want := "in acme/api, evidence about 222222222222 carries to 111111111111 by the claim att_1 of cn=queue,o=acme. " +
		"The source was built on 333333333333 of the branch topic, which was not merged. To end the claim, and all that " +
		"this identity has signed since, run 'ledgerd identity revoke idn_1 --org acme --since 2026-11-20T09:00:00.000Z'"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
