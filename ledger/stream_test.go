package ledger

import "testing"

func TestStreamDataOfRadarEvent(t *testing.T) {
	const want = `{"commit":"6e61","level":"HIGH","other":{"commit":"8dd9","branch":"feature/x","author":{"name":"Ada","email":"ada@acme.example"}},` +
		`"paths":[{"path":"d/","level":"LOW","reason":"sibling_files"}],"repo":"api","timestamp":"2026-11-23T09:00:00.123Z","paths_total":1}`
	event := Render(RadarEvent{
		ID: "evt_4", Org: "acme", Repo: "api", Commit: "6e61", Level: High, Timestamp: 1795424400123,
		Other: RadarOther{Commit: "8dd9", Branch: "feature/x", Author: Author{"Ada", "ada@acme.example"}},
		Paths: []RadarEventPath{{"d/", Low, SiblingFiles}},
	})
	got, err := StreamData(EventRadar, event)
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}
