package eventstream_test

import (
	"testing"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

func TestDataOfRadarEvent(t *testing.T) {
	const want = `{"commit":"6e61","level":"HIGH","other":{"commit":"8dd9","branch":"feature/x",` +
		`"author":{"name":"Ada","email":"ada@acme.example"}},` +
		`"paths":[{"path":"d/","level":"LOW","reason":"sibling_files"}],"repo":"api",` +
		`"timestamp":"2026-11-23T09:00:00.123Z","paths_total":1}`
	event := ledger.Render(ledger.RadarEvent{
		ID: "evt_4", Org: "acme", Repo: "api", Commit: "6e61", Level: radar.High, Timestamp: 1795424400123,
		Other: ledger.RadarOther{Commit: "8dd9", Branch: "feature/x",
			Author: ledger.Author{Name: "Ada", Email: "ada@acme.example"}},
		Paths: []ledger.RadarEventPath{{Path: "d/", Level: radar.Low, Reason: radar.SiblingFiles}},
	})
	got, err := eventstream.Data(ledger.EventRadar, event)
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
