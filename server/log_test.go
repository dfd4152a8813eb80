package server

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"maps"
	"math/bits"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/proof"
	"github.com/ledgerd/ledgerd/transparency"
)

const logOrigin = "ledger.example.com/v1/orgs/acme/log"

// A logBackend is a backend whose logs are signed when a test calls sign.
type logBackend struct {
	*backend
	signer *transparency.Signer
	keys   string // the folder
}

func newLogBackend(t *testing.T) *logBackend {
	t.Helper()
	b := &logBackend{keys: filepath.Join(t.TempDir(), "keys")}
	keys := must.Get(transparency.OpenKeys(b.keys, b.keys))(t)
	base := must.Get(url.Parse("https://ledger.example.com"))(t)
	b.backend = newBackend(t, func(c *Config) {
		b.signer = transparency.NewSigner(transparency.Config{Store: c.Store, Keys: keys, BaseURL: base, Logger: c.Logger})
		c.Logs.Signing = b.signer.Problems
	})
	return b
}

// grow adds n events.
func (b *logBackend) grow(n int) {
	b.t.Helper()
	for range n {
		b.logKey(ledger.KeyEvent{Action: ledger.KeyRevoked, Purpose: ledger.KeyOfReceipts})
	}
}

// growTo adds events until the log has n, and signs it.
func (b *logBackend) growTo(n int64) {
	b.t.Helper()
	l, err := b.store.Log(b.t.Context(), "acme", 0)
	must.OK(b.t, err)
	b.grow(int(n - l.Leaves))
	b.sign()
}

func (b *logBackend) sign() {
	b.t.Helper()
	must.OK(b.t, b.signer.SignAll(b.t.Context(), true))
}

// edit changes the database behind the back of the server.
func (b *backend) edit(statement string, args ...any) {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+b.file+"?_pragma=busy_timeout(10000)")
	must.OK(b.t, err)
	_, err = db.Exec(statement, args...)
	must.OK(b.t, err)
	must.OK(b.t, db.Close())
}

const logPath = "/v1/orgs/acme/log"

func (b *logBackend) status() ledger.Log {
	b.t.Helper()
	return decode[ledger.Log](b.get(logPath).want(200))
}

// checkpoint returns the newest checkpoint of the log at a path, whose signature it verifies.
func (b *logBackend) checkpoint(path, vkey string) proof.Checkpoint {
	b.t.Helper()
	verifier := must.Get(note.NewVerifier(vkey))(b.t)
	return must.Get(proof.OpenCheckpoint(b.get(path+"/checkpoint").want(200).body, verifier))(b.t)
}

// tilesOf returns the paths of all tiles and entry bundles of a log of the given size, as C2SP
// tlog-tiles says.
func tilesOf(size int64) (paths []string) {
	for level, n := 0, size; n > 0; level, n = level+1, n/256 {
		for i := int64(0); i*256 < n; i++ {
			suffix := fmt.Sprintf("%03d", i)
			if width := min(n-i*256, 256); width < 256 {
				suffix += fmt.Sprintf(".p/%d", width)
			}
			paths = append(paths, fmt.Sprintf("/tile/%d/%s", level, suffix))
			if level == 0 {
				paths = append(paths, "/tile/entries/"+suffix)
			}
		}
	}
	return paths
}

// entries reads the records of a log of the given size.
func (b *logBackend) entries(path string, size int64) (records [][]byte) {
	b.t.Helper()
	for _, tile := range tilesOf(size) {
		if strings.HasPrefix(tile, "/tile/entries/") {
			bundle := must.Get(proof.ParseBundle(b.get(path + tile).want(200).body))(b.t)
			records = append(records, bundle...)
		}
	}
	return records
}

// merkleRoot computes the root of a tree as RFC 6962, section 2.1, defines it.
func merkleRoot(records [][]byte) [32]byte {
	if len(records) == 1 {
		return sha256.Sum256(append([]byte{0}, records[0]...))
	}
	k := 1 << (bits.Len(uint(len(records)-1)) - 1) // the largest power of two below the number
	left, right := merkleRoot(records[:k]), merkleRoot(records[k:])
	return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
}

// Of each checkpoint, all tiles are served: the root over the entries is that of the
// checkpoint. They stay the same while the log grows.
func TestLogIsServed(t *testing.T) {
	b := newLogBackend(t)
	b.grow(1)
	b.sign()
	vkey, first := b.status().Key, b.status().Size
	tiles := make(map[string][]byte)
	for _, size := range []int64{first, first + 1, first + 2, 17, 255, 256, 257, 300, 511, 512, 520} {
		b.growTo(size)
		c := b.checkpoint(logPath, vkey)
		records := b.entries(logPath, size)
		if c.Size != size || c.Origin != logOrigin || len(records) != int(size) || c.Root != merkleRoot(records) {
			t.Fatalf("%d records have the root %x, and the checkpoint is %+v", len(records), merkleRoot(records), c)
		}

		for _, path := range tilesOf(size) {
			r := b.get(logPath + path).want(200)
			if r.header.Get("Cache-Control") != tileCaching[0] || r.header.Get("Content-Type") != typeBinary {
				t.Errorf("%s: %v", path, r.header)
			}
			tiles[path] = r.body
		}
	}

	for path, body := range tiles {
		if again := b.get(logPath + path).want(200); !bytes.Equal(again.body, body) {
			t.Errorf("%s has changed", path)
		}
		if _, width, ok := strings.Cut(path, ".p/"); ok && !strings.HasPrefix(path, "/tile/entries") {
			full := b.get(logPath + strings.TrimSuffix(path, ".p/"+width))
			if full.status == 200 && !bytes.HasPrefix(full.body, body) {
				t.Errorf("%s is not the beginning of the full tile", path)
			}
		}
	}
	if len(tiles) < 24 {
		t.Errorf("only %d tiles were read: %q", len(tiles), slices.Sorted(maps.Keys(tiles)))
	}
}

// An entry is only served if the body of its event is what the leaf commits to. What cannot
// be compared is served as it is, and does not fit the tiles.
func TestChangedEventsAreNotEntries(t *testing.T) {
	b := newLogBackend(t)
	b.growTo(300)
	want := b.entries(logPath, 300)

	for change, refused := range map[string]bool{
		`body = CAST(replace(body, '"timestamp":', '"Timestamp":') AS BLOB)`: true,
		"body = zeroblob(0)":                       true,
		"salt = zeroblob(16)":                      true,
		"leaf = zeroblob(32)":                      true,
		"salt = NULL":                              false, // as if it were pruned
		"salt = NULL, body = zeroblob(0)":          false,
		"salt = NULL, leaf = zeroblob(32)":         false,
		"event_id = replace(event_id, '_0', '_1')": false,
	} {
		for seq, bundle := range map[int]string{7: "000", 299: "001.p/44"} {
			b.edit("CREATE TABLE saved AS SELECT * FROM events WHERE seq = ?", seq)
			b.edit("UPDATE events SET "+change+" WHERE seq = ?", seq)

			if refused {
				b.get(logPath+"/tile/entries/"+bundle).wantProblem(500, ledger.CodeInternal)
			} else {
				got, differs := b.entries(logPath, 300), strings.Contains(change, "leaf") || strings.Contains(change, "_id")
				for i := range want {
					if bytes.Equal(got[i], want[i]) == (differs && i == seq) {
						t.Errorf("%s: entry %d is %s, want %s", change, i, got[i], want[i])
					}
				}
			}
			b.edit(`UPDATE events SET (event_id, body, salt, leaf) =
				(SELECT event_id, body, salt, leaf FROM saved) WHERE seq = ?; DROP TABLE saved`, seq)
		}
	}
	if !strings.Contains(b.log.String(), "is not what its leaf commits to") {
		t.Errorf("logged:\n%.1000s", b.log)
	}
	b.entries(logPath, 300)
}

// Each width up to the checkpoint's can be read, and no other.
func TestWidthsOfTiles(t *testing.T) {
	b := newLogBackend(t)
	b.growTo(300)
	b.grow(10) // not in the checkpoint
	for width := 1; width < 256; width++ {
		for tile, maximum := range map[string]int{"0/000": 255, "0/001": 44, "1/000": 1, "2/000": 0, "entries/000": 255,
			"entries/001": 44, "entries/002": 0} {
			want := 404
			if width <= maximum {
				want = 200
			}
			r := b.get(fmt.Sprintf("%s/tile/%s.p/%d", logPath, tile, width)).want(want)
			if want == 200 && !strings.HasPrefix(tile, "entries") && len(r.body) != 32*width {
				t.Errorf("tile %s of width %d has %d bytes", tile, width, len(r.body))
			}
			if want == 404 && !strings.Contains(string(r.body), "its checkpoint has 300 leaves") {
				t.Errorf("got %s", r.body)
			}
		}
	}
}

// Numbers of tiles have groups of three digits, all but the last with an x.
func TestPathOfATileOfALargeLog(t *testing.T) {
	b := newLogBackend(t)
	b.growTo(300)
	b.edit("UPDATE logs SET size = 1234068 * 256")
	for path, n := range map[string]int{"x001/x234/067": 1234067, "x234/067": 234067, "x001/000": 1000, "999": 999} {
		want := bytes.Repeat([]byte{byte(n)}, 256*32)
		b.edit("INSERT INTO tiles (log_id, level, n, hashes) VALUES ((SELECT id FROM logs), 0, ?, ?)", n, want)
		if r := b.get(logPath + "/tile/0/" + path).want(200); !bytes.Equal(r.body, want) {
			t.Errorf("%s: got tile %d", path, r.body[0])
		}
	}
	b.get(logPath + "/tile/0/x001/x234/068").want(404)
}

func TestWrongPathsOfALog(t *testing.T) {
	b := newLogBackend(t)
	for _, path := range []string{"/checkpoint", "/tile/0/000"} {
		p := b.get(logPath+path).wantProblem(404, ledger.CodeNotFound)
		if !strings.Contains(p.Detail, "has no checkpoint yet") {
			t.Errorf("%s: %s", path, p.Detail)
		}
	}

	b.growTo(300)
	for reason, paths := range map[string][]string{
		"see C2SP tlog-tiles": {"/", "/x", "/tile", "/checkpoint/", "/checkpoint.txt", "/0/checkpoint", "/1/checkpoint",
			"/01/checkpoint", "/02/checkpoint", "/-2/checkpoint", "/+2/checkpoint", "/x2/checkpoint", "/2/3/checkpoint"},
		"invalid tile": {"/tile/", "/tile/0", "/tile/0/", "/tile/0/0", "/tile/0/00", "/tile/0/0000", "/tile/0/x000/000",
			"/tile/0/000.p/0", "/tile/0/000.p/256", "/tile/0/000.p/01", "/tile/0/000.p/-1", "/tile/0/000.p/", "/tile/0/000.p",
			"/tile/-1/000", "/tile/64/000", "/tile/00/000", "/tile/0/000.p/1/2", "/tile/data/000", "/tile/0/000/",
			"/tile/0/001/000", "/tile/0/x1/000", "/tile/0/" + strings.Repeat("x999/", 9) + "999"},
		"its checkpoint has 300 leaves": {"/tile/0/002", "/tile/0/001", "/tile/63/000", "/tile/1/000",
			"/tile/0/x001/x234/067"},
		"no log of epoch": {"/2/checkpoint", "/2/tile/0/000", "/99/checkpoint"},
	} {
		for _, path := range paths {
			r := b.get(logPath + path)
			p := r.wantProblem(404, ledger.CodeNotFound)
			if !strings.Contains(p.Detail, reason) || r.header.Get("Cache-Control") != "private, no-cache" {
				t.Errorf("%s: %s, Cache-Control: %s", path, p.Detail, r.header.Get("Cache-Control"))
			}
		}
	}
	b.post(logPath+"/checkpoint", "{}").want(405)
}

// A checkpoint may be asked for again and again: it has an ETag.
func TestCheckpointIsTagged(t *testing.T) {
	b := newLogBackend(t)
	b.growTo(10)
	r := b.get(logPath + "/checkpoint").want(200)
	tag := map[string]string{"If-None-Match": r.header.Get("ETag")}
	again := request{method: "GET", path: logPath + "/checkpoint", token: b.reader, header: tag}
	b.send(again).want(304)
	if r.header.Get("Cache-Control") != "private, no-cache" || r.header.Get("Content-Type") != typeNote {
		t.Errorf("got %v", r.header)
	}
	head := b.send(request{method: "HEAD", path: logPath + "/checkpoint", token: b.reader}).want(200)
	if len(head.body) > 0 || head.header.Get("ETag") != r.header.Get("ETag") {
		t.Errorf("got %v", head)
	}
	b.growTo(11)
	b.send(again).want(200)
}

// events returns the bodies of the org's events.
func (b *logBackend) events() [][]byte {
	b.t.Helper()
	types := make([]string, 0, len(ledger.EventTypes()))
	for _, kind := range ledger.EventTypes() {
		types = append(types, string(kind))
	}
	path := "/v1/orgs/acme/events?limit=500&types=" + strings.Join(types, ",")
	page := decode[ledger.Page[jsontext.Value]](
		b.send(request{method: "GET", path: path, token: b.admin}).want(200))
	bodies := make([][]byte, len(page.Data))
	for i, body := range page.Data {
		bodies[i] = body
	}
	return bodies
}

func idOf(t *testing.T, body []byte) string {
	t.Helper()
	var event struct {
		ID string `json:"id"`
	}
	must.OK(t, json.Unmarshal(body, &event))
	return event.ID
}

// Each proof leads from the body of an event to a signed checkpoint.
func TestProofsOfEvents(t *testing.T) {
	b := newLogBackend(t)
	ci := b.backend.signer("cn=ci,ou=build,o=acme")
	b.attest(ci.statement(t, commitID(1), "test:go", ledger.Pass, 1)).want(201)
	b.growTo(280)
	l := b.status()
	verifier := must.Get(note.NewVerifier(l.Key))(t)
	records := b.entries(logPath, l.Size)
	bodies := b.events()
	if len(bodies) != len(records) || len(bodies) != 280 {
		t.Fatalf("%d events, %d entries", len(bodies), len(records))
	}

	for i, body := range bodies {
		id := idOf(t, body)
		r := b.send(request{method: "GET", path: "/v1/orgs/acme/events/" + id + "/proof", token: b.admin}).want(200)
		p := must.Get(proof.ParseInclusion(r.body))(t)
		c := must.Get(proof.OpenCheckpoint(p.Checkpoint, verifier))(t)
		opening := must.Get(proof.ParseOpening(p.Extra))(t)
		must.OK(t, opening.Verify(body))
		must.OK(t, p.Verify(opening.Leaf.LeafHash(), c))
		if p.Index != int64(i) || !bytes.Equal(opening.Leaf.Record(), records[i]) || c.Size != 280 {
			t.Errorf("the proof of event %d is %s, and the entry %s", i, r.body, records[i])
		}
		if cache := r.header.Get("Cache-Control"); cache != "private, no-cache" || r.header.Get("Content-Type") != typeNote {
			t.Errorf("got %v", r.header)
		}
	}

	// The proof of an attestation is that of its event.
	page := decode[ledger.Page[ledger.AttestationRecord]](b.get(attestationsPath).want(200))
	rec := decode[ledger.AttestationRecord](b.get(attestationsPath + "/" + page.Data[0].ID).want(200))
	got := b.get(attestationsPath + "/" + rec.ID + "/proof").want(200)
	if want := b.get("/v1/orgs/acme/events/" + rec.Event + "/proof").want(200); !bytes.Equal(got.body, want.body) {
		t.Errorf("got %s, want %s", got.body, want.body)
	}
	p := must.Get(proof.ParseInclusion(got.body))(t)
	if e := decode[ledger.AttestationEvent](response{t: t, body: bodies[p.Index]}); e.Attestation != rec.ID {
		t.Errorf("the proof is of %s", bodies[p.Index])
	}

	for _, path := range []string{"/v1/orgs/acme/events/evt_01HZZZZZZZZZZZZZZZZZZZZZZZ/proof",
		attestationsPath + "/att_01HZZZZZZZZZZZZZZZZZZZZZZZ/proof"} {
		b.get(path).wantProblem(404, ledger.CodeNotFound)
	}
}

// An event that no checkpoint covers cannot be proved yet.
func TestProofBeforeTheCheckpoint(t *testing.T) {
	b := newLogBackend(t)
	last := func() string {
		bodies := b.events()
		return "/v1/orgs/acme/events/" + idOf(t, bodies[len(bodies)-1]) + "/proof"
	}
	refused := func(reason string) {
		t.Helper()
		p := b.get(last()).wantProblem(409, ledger.CodeNotInCheckpoint)
		if !strings.Contains(p.Detail, reason) {
			t.Errorf("got %s", p.Detail)
		}
	}

	b.grow(1)
	refused("no checkpoint yet")
	b.sign()
	b.get(last()).want(200)
	b.grow(1)
	refused("try again in a second")
	b.sign()
	b.get(last()).want(200)
}
