package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/eventstream"
	"github.com/ledgerd/ledgerd/ledger/outbound"
	"github.com/ledgerd/ledgerd/ledger/radar"
)

const radarPath = "/v1/orgs/acme/repos/api/radar"

// editing returns a change of one line of a file. Two such changes overlap at level
// HIGH if they are adjacent, MEDIUM in the same file, and LOW in the same directory.
func editing(path string, line int) radar.Change {
	hash := func(kind string, gap int) string { return fmt.Sprintf("%s%014x", kind, gap) }
	return radar.Change{
		Path: path, Status: "M", OldMode: "100644", Mode: "100644",
		OldBlob: fmt.Sprintf("%040x", len(path)), Blob: fmt.Sprintf("%032x%08x", len(path), line),
		Hunks: []radar.Hunk{{Start: line, Lines: 1, Added: 1, Text: hash("e1", line),
			Near: []string{hash("aa", line-1), hash("aa", line)}, Far: []string{hash("bb", line-1), hash("bb", line)}}},
	}
}

func registering(branch string, changes ...radar.Change) ledger.Registration {
	return ledger.Registration{
		Branch: branch, Author: ledger.Author{Name: branch, Email: branch + "@acme.example"}, Message: "work on " + branch +
			"\n\nat length", Changes: changes,
	}
}

// push registers the n-th commit as the tip of a branch.
func (b *backend) push(n int, branch string, changes ...radar.Change) ledger.Commit {
	b.t.Helper()
	resp := b.send(request{method: "PUT", path: commitPath(commitID(n)), token: b.writer,
		body: toJSON(b.t, registering(branch, changes...))})
	return decode[ledger.Commit](resp)
}

// pairs returns a list of overlaps as "later+earlier LEVEL", with the branches.
func (b *backend) pairs(query string) []string {
	b.t.Helper()
	var list []string
	for _, p := range decode[ledger.Page[ledger.RadarPair]](b.get(radarPath + query).want(200)).Data {
		list = append(list, fmt.Sprintf("%s+%s %s", p.Commit.Branch, p.Other.Branch, p.Level))
	}
	return list
}

func TestOverlaps(t *testing.T) {
	b := newBackend(t)
	b.push(1, "one", editing("cmd/root.go", 100))
	b.clock.advance(time.Second)
	b.push(2, "two", editing("cmd/serve.go", 1), editing("cmd/root.go", 110))
	b.clock.advance(time.Second)
	pushed := b.push(3, "three", editing("cmd/root.go", 101))

	page := decode[ledger.Page[ledger.RadarPair]](b.get(radarPath + "?limit=1").want(200))
	first := page.Data[0]
	high := ledger.RadarPair{
		Level: radar.High, Since: b.clock.time(),
		Commit: ledger.RadarCommit{SHA: commitID(3), Branch: "three",
			Author: ledger.Author{Name: "three", Email: "three@acme.example"}, Subject: "work on three"},
		Other: ledger.RadarCommit{SHA: commitID(1), Branch: "one",
			Author: ledger.Author{Name: "one", Email: "one@acme.example"}, Subject: "work on one"},
		Paths: []radar.Path{{Path: "cmd/root.go", Level: radar.High, Reason: radar.SameLines, Ranges: radar.Ranges{
			Commit: []radar.LineRange{{Start: 101, Lines: 1}}, Other: []radar.LineRange{{Start: 100, Lines: 1}},
		}}},
		PathsTotal: 1,
	}
	if toJSON(t, first) != toJSON(t, high) {
		t.Errorf("first overlap\n%s, want\n%s", toJSON(t, first), toJSON(t, high))
	}
	if pushed.Radar == nil || pushed.Radar.Level != radar.High || toJSON(t, pushed.Radar.Overlaps[0]) != toJSON(t, high) ||
		!pushed.InFlight || pushed.Overlaps["HIGH"] != 1 || pushed.Overlaps["MEDIUM"] != 1 {
		t.Errorf("response to the registration\n%s", toJSON(t, pushed))
	}

	for query, want := range map[string][]string{
		"":                                    {"three+one HIGH", "three+two MEDIUM", "two+one MEDIUM"},
		"?level=HIGH":                         {"three+one HIGH"},
		"?level=MEDIUM":                       {"three+two MEDIUM", "two+one MEDIUM"},
		"?level=LOW":                          nil,
		"?commit=" + commitID(1):              {"three+one HIGH", "two+one MEDIUM"},
		"?commit=" + commitID(2) + "&limit=1": {"three+two MEDIUM"},
		"?branch=one&level=MEDIUM":            {"two+one MEDIUM"},
		"?branch=none":                        nil,
	} {
		if got := b.pairs(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	b.get(radarPath+"?level=none").wantFields(400, ledger.CodeInvalidParameter, "level")
	b.get(radarPath+"?level=high").wantFields(400, ledger.CodeInvalidParameter, "level")
	b.get(radarPath+"?commit=HEAD").wantFields(400, ledger.CodeInvalidParameter, "commit")
	b.get(radarPath+"?cursor=x").wantProblem(400, ledger.CodeInvalidCursor)
	b.get(radarPath+"?commit="+commitID(9)).wantProblem(404, ledger.CodeNotFound)
	b.get(radarPath+"?commit="+commitID(1)[:20]).wantProblem(409, ledger.CodeAmbiguousCommit)
	b.get("/v1/orgs/acme/repos/none/radar").wantProblem(404, ledger.CodeNotFound)
}

// A page starts where the previous one ended, even between two levels.
func TestOverlapsPageByPage(t *testing.T) {
	b := newBackend(t)
	for n := range 6 { // causes 3 HIGH, 4 MEDIUM and 8 LOW overlaps
		path := "cmd/root.go"
		if n >= 4 {
			path = "cmd/serve.go"
		}
		b.push(n, fmt.Sprint("b", n), editing(path, 1+10*(n/2)+n%2))
	}
	whole := b.pairs("?limit=500")
	if len(whole) != 15 || !slices.IsSortedFunc(whole, func(x, y string) int { return rank(y) - rank(x) }) {
		t.Fatalf("overlaps %q, want 15, strongest first", whole)
	}
	var walked []string
	for next := radarPath + "?limit=2"; next != ""; {
		walked = append(walked, b.pairs(strings.TrimPrefix(next, radarPath))...)
		_, next = b.page(next, "level")
	}
	if !slices.Equal(walked, whole) {
		t.Errorf("pages with %q, want %q", walked, whole)
	}
}

func rank(pair string) int {
	_, name, _ := strings.Cut(pair, " ")
	level, _ := radar.ParseLevel(name)
	return int(level)
}

func TestPreviewOverlaps(t *testing.T) {
	b := newBackend(t)
	b.push(1, "one", editing("cmd/root.go", 100))
	preview := func(token string, q ledger.RadarQuery) response {
		t.Helper()
		return b.send(request{method: "POST", path: radarPath, token: token, body: toJSON(t, q)})
	}
	eventsBefore := b.get("/v1/orgs/acme/events?types=radar,state").want(200).body

	got := decode[ledger.RadarResult](
		preview(b.reader, ledger.RadarQuery{
			Commit: commitID(2), Registration: registering("two", editing("cmd/root.go", 101))}).want(200))
	if got.Level != radar.High || len(got.Overlaps) != 1 || got.Overlaps[0].Since != 0 ||
		got.Overlaps[0].Commit.SHA != commitID(2) || got.Overlaps[0].Other.SHA != commitID(1) {
		t.Errorf("preview %+v", got)
	}

	b.get(commitPath(commitID(2))).wantProblem(404, ledger.CodeNotFound)
	if got := b.pairs(""); len(got) != 0 {
		t.Errorf("overlaps after a preview: %q", got)
	}
	if after := b.get("/v1/orgs/acme/events?types=radar,state").want(200).body; string(after) != string(eventsBefore) {
		t.Errorf("events after a preview: %s", after)
	}

	b.send(request{method: "POST", path: radarPath, token: b.reader, body: `{"sha":"x"}`}).wantFields(
		400, ledger.CodeUnknownField, "sha")
	b.send(request{method: "POST", path: radarPath, token: b.reader, body: `{"commit":"HEAD"}`}).wantFields(
		422, ledger.CodeInvalidField, "commit")
	b.send(request{method: "POST", path: radarPath, token: b.reader,
		body: `{"changes":[{"path":"/etc","status":"M"}]}`}).wantFields(422, ledger.CodeInvalidField, "changes[0].path")
	b.send(request{method: "POST", path: radarPath, token: b.reader}).wantProblem(415, ledger.CodeUnsupportedMediaType)
	b.send(request{method: "POST", path: "/v1/orgs/acme/repos/none/radar", token: b.reader, body: `{}`}).wantProblem(404,
		ledger.CodeNotFound)
}

func TestWithdraw(t *testing.T) {
	b := newBackend(t)
	b.push(1, "one", editing("cmd/root.go", 100))
	b.push(2, "two", editing("cmd/root.go", 101))
	withdraw := func(sha string) response {
		t.Helper()
		return b.send(request{method: "POST", path: commitPath(sha) + "/withdraw", token: b.writer})
	}
	for range 2 { // the second time is a no-op
		if c := decode[ledger.Commit](withdraw(commitID(1)).want(200)); c.InFlight || c.Overlaps["HIGH"] != 0 ||
			c.Radar != nil {
			t.Errorf("withdrawn: in flight %t, overlaps %v", c.InFlight, c.Overlaps)
		}
	}
	if got := b.pairs(""); len(got) != 0 {
		t.Errorf("overlaps %q after withdrawing a commit", got)
	}
	if c := b.push(1, "one", editing("cmd/root.go", 100)); !c.InFlight || c.Overlaps["HIGH"] != 1 {
		t.Errorf("registered again: in flight %t, overlaps %v", c.InFlight, c.Overlaps)
	}
	b.put(commitPath(commitID(3)), "{}").want(201)
	if c := decode[ledger.Commit](withdraw(commitID(3)[:40]).want(200)); c.InFlight {
		t.Error("a commit without a branch is in flight")
	}

	withdraw(commitID(9)).wantProblem(404, ledger.CodeNotFound)
	withdraw("HEAD").wantProblem(404, ledger.CodeNotFound)
	withdraw(commitID(1)[:20]).wantProblem(409, ledger.CodeAmbiguousCommit)
	b.send(request{method: "POST", path: commitPath(commitID(1)) + "/withdraw", token: b.writer,
		body: `{"why":"x"}`}).wantFields(400, ledger.CodeUnknownField, "why")
	b.send(request{method: "POST", path: commitPath(commitID(1)) + "/withdraw", token: b.reader}).wantProblem(403,
		ledger.CodeForbidden)
}

// Radar events are only sent to streams and webhooks that select them.
func TestRadarEvents(t *testing.T) {
	b := newBackend(t)
	withRadar, withoutRadar := b.listen("?types=radar,policy", b.reader, nil), b.listen("", b.reader, nil)
	radarWebhook := b.webhook(`{"url":"https://ci.example.com","events":["radar"]}`)
	defaultWebhook := b.webhook(`{"url":"https://ci.example.com"}`)

	b.push(1, "one", editing("cmd/root.go", 100))
	b.push(2, "two", editing("cmd/root.go", 101))
	b.putPolicy("*", `{"requirements":[]}`).want(200)

	page := decode[ledger.Page[jsontext.Value]](b.get("/v1/orgs/acme/events?types=radar").want(200))
	if len(page.Data) != 1 {
		t.Fatalf("history %s", page.Data)
	}
	var e ledger.RadarEvent
	must.OK(t, ledger.DecodeStrict(page.Data[0], &e))
	if e.Commit != commitID(2) || e.Level != radar.High || e.Other.Commit != commitID(1) || e.Other.Branch != "one" ||
		e.Other.Author.Name != "one" ||
		len(e.Paths) != 1 ||
		e.Paths[0] != (ledger.RadarEventPath{Path: "cmd/root.go", Level: radar.High, Reason: radar.SameLines}) {
		t.Errorf("event %s", page.Data[0])
	}
	if history, _ := b.page("/v1/orgs/acme/events", "type"); slices.Contains(history, "radar") {
		t.Errorf("history by default: %q", history)
	}

	data, err := eventstream.Data(ledger.EventRadar, page.Data[0])
	must.OK(t, err)
	if got, want := withRadar.next(2)[0], (message{e.ID, "radar", string(data)}); got != want {
		t.Errorf("streamed\n%+v, want\n%+v", got, want)
	}
	// The policy event came after the radar event.
	if got := withoutRadar.next(1)[0]; got.event != "policy" {
		t.Errorf("stream by default: %+v", got)
	}

	deliveries := func(w outbound.Webhook) []string {
		types, _ := b.page(webhooksPath+"/"+w.ID+"/deliveries", "type")
		return types
	}
	if got := deliveries(radarWebhook); !slices.Equal(got, []string{"radar"}) {
		t.Errorf("deliveries of the radar webhook: %q", got)
	}
	if got := deliveries(defaultWebhook); !slices.Equal(got, []string{"policy"}) {
		t.Errorf("deliveries of the default webhook: %q", got)
	}
	ids, _ := b.page(webhooksPath+"/"+radarWebhook.ID+"/deliveries", "id")
	if record := decode[outbound.DeliveryRecord](
		b.get(webhooksPath + "/" + radarWebhook.ID + "/deliveries/" + ids[0]).want(200)); string(record.Body) !=
		string(page.Data[0]) {
		t.Errorf("delivered\n%s, want\n%s", record.Body, page.Data[0])
	}
}
