package evidence

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/ledger"
)

func read(text []byte) (*Archive, error) { return Read(bytes.NewReader(text), int64(len(text))) }

// packed returns a tar with the given headers, each with a content of its size.
func packed(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		must.OK(t, w.WriteHeader(&h))
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	must.OK(t, w.Close())
	return out.Bytes()
}

// written returns what the writer makes of files.
func written(t testing.TB, files map[string]string, order ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := newWriter(&out)
	for _, name := range order {
		must.OK(t, w.add(name, 0, []byte(files[name])))
	}
	must.OK(t, w.close(0))
	return out.Bytes()
}

func TestRead(t *testing.T) {
	text := written(t, map[string]string{"b.json": `{"a":1}`, "dir/a": ""}, "b.json", "dir/a", "b.json")
	a, err := read(text)
	must.OK(t, err)
	if got := strings.Join(a.Names(), " "); got != "SHA256SUMS b.json dir/a" {
		t.Errorf("names %s", got)
	}
	if wrong := a.CheckSums(); wrong != nil {
		t.Errorf("sums: %v", wrong)
	}
	var v struct {
		A int `json:"a"`
	}
	if err := a.JSON("b.json", &v); err != nil || v.A != 1 {
		t.Errorf("b.json: %+v, %v", v, err)
	}
	if _, err := a.File("c"); err == nil || err.Error() != "c is missing" {
		t.Errorf("a file that is missing: %v", err)
	}

	// The file changes while it is read.
	i := bytes.Index(text, []byte(`{"a":1}`))
	text[i] = '['
	if _, err := a.File("b.json"); err == nil || !strings.Contains(err.Error(), "has changed while it was read") {
		t.Errorf("a file that has changed: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	regular := tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 3, Format: tar.FormatUSTAR}
	named := func(name string) tar.Header {
		h := regular
		h.Name = name
		return h
	}
	typed := func(kind byte, target string) tar.Header {
		return tar.Header{Typeflag: kind, Name: "a", Linkname: target, Format: tar.FormatUSTAR}
	}
	large := packed(t, regular)
	copy(large[124:], fmt.Sprintf("%011o\x00", int64(MaxFile)+1)) // the size in the header
	sum := 0
	copy(large[148:], "        ")
	for _, b := range large[:512] {
		sum += int(b)
	}
	copy(large[148:], fmt.Sprintf("%06o\x00 ", sum))

	extended := tar.Header{Typeflag: tar.TypeReg, Name: "a", Format: tar.FormatPAX,
		PAXRecords: map[string]string{"X.y": "z"}}

	good := packed(t, regular)
	for name, test := range map[string]struct {
		text []byte
		want string
	}{
		"empty name":       {packed(t, named(".")), "which no export has"},
		"parent":           {packed(t, named("../a")), "which no export has"},
		"parent inside":    {packed(t, named("a/../../b")), "which no export has"},
		"absolute":         {packed(t, named("/etc/passwd")), "which no export has"},
		"backslash":        {packed(t, named(`..\a`)), "which no export has"},
		"drive":            {packed(t, named("C:a")), "which no export has"},
		"hidden":           {packed(t, named(".ssh/key")), "which no export has"},
		"control":          {packed(t, named("a\x1b[31m")), "which no export has"},
		"not ASCII":        {packed(t, tar.Header{Typeflag: tar.TypeReg, Name: "ä"}), "which no export has"},
		"empty part":       {packed(t, named("a//b")), "which no export has"},
		"folder":           {packed(t, tar.Header{Typeflag: tar.TypeDir, Name: "a/"}), "which no export has"},
		"symbolic link":    {packed(t, typed(tar.TypeSymlink, "/etc/passwd")), "is not a regular file"},
		"hard link":        {packed(t, typed(tar.TypeLink, "b")), "is not a regular file"},
		"device":           {packed(t, typed(tar.TypeChar, "")), "is not a regular file"},
		"pipe":             {packed(t, typed(tar.TypeFifo, "")), "is not a regular file"},
		"twice":            {packed(t, regular, regular), "two files with the name a"},
		"other form":       {packed(t, extended), "another form of tar"},
		"large":            {large, "more than 67108864 bytes"},
		"truncated":        {good[:514], "truncated"},
		"truncated header": {good[:100], "truncated"},
		"without an end":   {good[:1024], "truncated"},
		"with half an end": {good[:1536], "truncated"},
		"more after it":    {append(bytes.Clone(good), "more"...), "goes on after the end"},
		"gzip":             {[]byte("\x1f\x8b\x08" + strings.Repeat("x", 600)), "not a tar file"},
		"text":             {bytes.Repeat([]byte("text\n"), 200), "not a tar file"},
	} {
		if _, err := read(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := Read(bytes.NewReader(nil), MaxSize+1); err == nil || !strings.Contains(err.Error(), "4294967296 bytes") {
		t.Errorf("more than MaxSize: %v", err)
	}
	if _, err := read(packed(t)); err != nil {
		t.Errorf("no files: %v", err)
	}
}

func TestEvidenceFilesAreLimited(t *testing.T) {
	var out bytes.Buffer
	w := newWriter(&out)
	for n := range MaxFiles {
		w.names[fmt.Sprint(n)] = true
	}
	if err := w.add("a", 0, nil); err == nil || !strings.Contains(err.Error(), "more than 300000 files") {
		t.Errorf("a file too many: %v", err)
	}

	w = newWriter(&out)
	w.size = MaxSize - 2*blockSize
	if err := w.add("a", 0, []byte("x")); err == nil || !strings.Contains(err.Error(), "more than 4294967296 bytes") {
		t.Errorf("a byte too many: %v", err)
	}
	if err := newWriter(&out).add("a", 0, make([]byte, MaxFile+1)); err == nil {
		t.Error("a file that is too large is written")
	}
	if err := newWriter(&out).add("../a", 0, nil); err == nil {
		t.Error("a name that is not valid is written")
	}
}

func TestCheckSums(t *testing.T) {
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("xxx")))
	sums := func(text string) *Archive {
		t.Helper()
		var out bytes.Buffer
		w := newWriter(&out)
		for _, name := range []string{"a", "b"} {
			must.OK(t, w.write(name, 0, []byte("xxx")))
		}
		w.sums.WriteString(text)
		must.OK(t, w.close(0))
		a, err := read(out.Bytes())
		must.OK(t, err)
		return a
	}

	good := digest + "  a\n" + digest + "  b\n"
	for text, want := range map[string]string{
		good:                       "[]",
		digest + "  a\n":           "[b is not listed in SHA256SUMS]",
		good + digest + "  c\n":    "[c is missing]",
		good + digest + "  a\n":    "[SHA256SUMS has a line that is not valid",
		good + digest + " *c\n":    "[SHA256SUMS has a line that is not valid",
		good + digest + "  ../c\n": "[SHA256SUMS has a line that is not valid",
		good + "0  c\n":            "[SHA256SUMS has a line that is not valid",
		strings.Replace(good, digest, strings.Repeat("0", 64), 1): "[a has changed",
	} {
		if got := fmt.Sprint(sums(text).CheckSums()); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}

	a, err := read(packed(t))
	must.OK(t, err)
	if got := fmt.Sprint(a.CheckSums()); got != "[SHA256SUMS is missing]" {
		t.Errorf("without sums: %s", got)
	}
}

func TestManifestOfAnotherFormat(t *testing.T) {
	for text, want := range map[string]string{
		`{"format":"ledgerd-evidence/v2"}`: "this version of ledgerd reads ledgerd-evidence/v1",
		`{}`:                               "this version of ledgerd reads",
		`[]`:                               "parse manifest.json",
		`{"format":"ledgerd-evidence/v1","commits":["` + strings.Repeat(`a","`, MaxCommits) + `b"]}`: "more than 10000",
	} {
		a, err := read(written(t, map[string]string{ManifestFile: text}, ManifestFile))
		must.OK(t, err)
		if _, err := a.Manifest(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// FuzzRead reads any bytes: what is accepted has only good names, and its files can be read.
func FuzzRead(f *testing.F) {
	const record = "commits/abc/record.json"
	f.Add(written(f, map[string]string{ManifestFile: `{"format":"ledgerd-evidence/v1","commits":["abc"]}`, record: "{}",
		"events/evt_1.json": "{}"}, ManifestFile, record, "events/evt_1.json"))
	f.Add(packed(f, tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 3, Format: tar.FormatUSTAR}))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := read(text)
		if err != nil {
			return
		}
		for _, name := range a.Names() {
			if !isName(name) {
				t.Errorf("the name %q is accepted", name)
			}
			if _, err := a.File(name); err != nil {
				t.Error(err)
			}
		}
		a.CheckSums()

		m, err := a.Manifest()
		if err != nil {
			return
		}
		a.Strays(m)
		for _, sha := range m.Commits {
			if c, err := a.Commit(sha); err == nil {
				page := Page{Manifest: m}
				page.Add(c, a.Has)
				if _, err := page.Render(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// Everything on the page is escaped.
func TestPageEscapes(t *testing.T) {
	const evil = `<script>alert(1)</script>"'><img src=x onerror=y>`
	var c Commit
	c.Record.SHA, c.Record.Message, c.Record.Branch = evil, evil, evil
	c.Record.Author = ledger.Author{Name: evil, Email: evil}
	c.Record.Requirements = []ledger.RequirementStatus{{Name: evil, Predicate: evil, Reason: evil, Applies: true,
		SignersCounted: []string{evil, evil}}}
	c.Attestations = []ledger.AttestationRecord{{ID: "javascript:" + evil, Predicate: evil, Signer: evil, Identity: evil,
		Event: evil, Result: ledger.Result{Status: evil}}}
	c.Transitions = []ledger.Transition{{Cause: ledger.Cause{Type: evil, ID: evil}}}
	page := Page{Manifest: Manifest{Org: evil, Repo: evil, Server: evil, CreatedBy: evil},
		Log: LogPage{Origin: evil, Key: evil}}
	page.Add(c, func(string) bool { return true })
	page.Add(c, func(string) bool { return true })
	text, err := page.Render()
	must.OK(t, err)
	for _, bad := range []string{"<script", "<img", `href="javascript:`, `"'>`} {
		if strings.Contains(string(text), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

// A change of the page needs another pageVersion: otherwise older exports do not verify.
func TestPageVersion(t *testing.T) {
	want := map[int]string{1: "7daa76f8dc19726e"}[pageVersion]
	if got := fmt.Sprintf("%x", sha256.Sum256([]byte(pageText)))[:16]; got != want {
		t.Errorf("the digest of page.html is %s, want %s: increase pageVersion once a release has had it", got, want)
	}
}
