package verify

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/cmd/internal/evidence"
	"github.com/ledgerd/ledgerd/internal/must"
	"github.com/ledgerd/ledgerd/internal/testenv"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/policy"
	"github.com/ledgerd/ledgerd/ledger/proof/trustpolicy"
	"github.com/ledgerd/ledgerd/ledger/proof/verify"
)

// export exports commit 1, or all commits if o says so.
func (h *host) export(o evidence.Options) []byte {
	h.t.Helper()
	o.Org, o.Repo, o.Version, o.Now = "acme", "api", "v1.2.3", ledger.TimeOf(time.Now())
	if o.Commit == "" && o.Since == 0 {
		o.Commit = commitID(1)
	}
	var out bytes.Buffer
	_, err := evidence.Export(h.t.Context(), h.admin, o, &out)
	must.OK(h.t, err)
	return out.Bytes()
}

// pinned is a person who knows the key of the log from elsewhere.
func pinned(h *host) *person {
	p := newPerson(h.t)
	l, err := h.store.Log(h.t.Context(), "acme", 0)
	must.OK(h.t, err)
	policy := must.Get(trustpolicy.Parse([]byte("log " + l.VKey + "\nquorum none\n")))(h.t)
	p.change = func(o *Options) { o.Policy = policy }
	return p
}

// evidence verifies an export.
func (p *person) evidence(text []byte) (verify.Report, error) {
	p.t.Helper()
	o := Options{Memory: p.memory, Now: ledger.TimeOf(time.Now())}
	if p.change != nil {
		p.change(&o)
	}
	archive, err := evidence.Read(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return verify.Report{}, err
	}
	return Evidence(o, archive)
}

// files are the files of an export.
type files map[string][]byte

func filesOf(t *testing.T, text []byte) files {
	t.Helper()
	f := make(files)
	r := tar.NewReader(bytes.NewReader(text))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return f
		}
		must.OK(t, err)
		f[header.Name], err = io.ReadAll(r)
		must.OK(t, err)
	}
}

// pack writes the files as an export, with the sums of what they are now.
func (f files) pack(t *testing.T) []byte {
	t.Helper()
	var sums bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if name != evidence.SumsFile {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f[name]), name)
		}
	}
	return f.packAs(t, sums.Bytes())
}

// packAs writes the files as an export with the given sums.
func (f files) packAs(t *testing.T, sums []byte) []byte {
	t.Helper()
	f[evidence.SumsFile] = sums
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		must.OK(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(f[name])),
			Format: tar.FormatUSTAR}))
		_, err := w.Write(f[name])
		must.OK(t, err)
	}
	must.OK(t, w.Close())
	return out.Bytes()
}

// named returns the name of the first file that matches a pattern. Of events, it is the first of
// an attestation.
func (f files) named(t *testing.T, pattern string) string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		matches, err := path.Match(pattern, name)
		must.OK(t, err)
		if event, _, ok := strings.Cut(name, "."); ok && strings.HasPrefix(name, "events/") {
			matches = matches && bytes.Contains(f[event+".json"], []byte(`"type":"attestation"`))
		}
		if matches {
			return name
		}
	}
	t.Fatalf("no file %s", pattern)
	return ""
}

func TestEvidence(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	h.attest(commitID(1), "lint:go", ledger.Fail)
	h.attest(commitID(2), "test:go", ledger.Pass)
	h.addSigner("cn=other,ou=build,o=acme")
	h.sign()
	text := h.export(evidence.Options{})
	if bytes.Contains(filesOf(t, text)[evidence.IdentitiesFile], []byte("cn=other")) {
		t.Error("the export has an identity that has signed nothing in it")
	}

	r, err := pinned(h).evidence(text)
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.OK, "2 attestations")
	want(t, r, verify.CheckStates, verify.OK, "1 commit")
	want(t, r, verify.CheckPolicy, verify.OK, "1 version")
	want(t, r, checkPage, verify.OK, "")
	if _, err := newPerson(t).evidence(text); err == nil || !strings.Contains(err.Error(), "is not known") {
		t.Errorf("without the key of the log: %v", err)
	}
	r, err = pinned(newHost(t)).evidence(text) // another key of the same log
	must.OK(t, err)
	want(t, r, verify.CheckCheckpoint, verify.Failed, "")

	// All commits, and the key of the log from an earlier contact.
	p := newPerson(t)
	wantVerified(t, p.verify(newSite(t, h), event(t, h.attest(commitID(3), "test:go", ledger.Pass).Event)))
	r, err = p.evidence(h.export(evidence.Options{Since: 1}))
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckStates, verify.OK, "3 commits")
}

// Two exports of the same have the same bytes, but for the times of the exports and receipts.
func TestEvidenceIsReproducible(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	h.attest(commitID(2), "test:go", ledger.Pass)
	one, two := h.export(evidence.Options{Since: 1}), h.export(evidence.Options{Since: 1})
	a, b := filesOf(t, one), filesOf(t, two)
	for name, content := range a {
		isDated := name == evidence.ManifestFile || name == evidence.PageFile || name == evidence.SumsFile
		if isReceipt := strings.HasSuffix(name, "/receipt.json"); !isReceipt && !isDated && !bytes.Equal(content, b[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d and %d files", len(a), len(b))
	}
}

// A byte that is changed in any file is found: by the sums, and by what is signed if the sums were
// changed too.
func TestEvidenceTampered(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	must.OK(t, h.require("test:*", "lint:*"))
	h.attest(commitID(1), "lint:go", ledger.Pass)
	_, _, err := h.admin.Register(t.Context(), "acme", "api", commitID(1), ledger.Registration{
		Author: ledger.Author{Name: "Ada", Email: "ada@example.org"}, Branch: "main", Message: "Add prices"})
	must.OK(t, err)
	h.sign()
	text, p := h.export(evidence.Options{}), pinned(h)
	r, err := p.evidence(text)
	must.OK(t, err)
	wantVerified(t, r)

	replace := func(old, by string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				t.Errorf("no %q in %s", old, b)
			}
			return bytes.Replace(b, []byte(old), []byte(by), 1)
		}
	}
	flip := func(b []byte) []byte {
		b = slices.Clone(b)
		b[len(b)/2] ^= 1
		return b
	}
	remove := func([]byte) []byte { return nil }
	const record, commit = "commits/*/attestations/*/record.json", "commits/*/record.json"
	const since = ",\n  \"state_since\""                       // after the state of a commit
	const event, proofFile = "events/*.json", "events/*.proof" // of an attestation
	for name, test := range map[string]struct {
		file   string // pattern
		change func([]byte) []byte
		check  string
	}{
		"state of a record":       {commit, replace("\"PROMOTABLE\""+since, "\"DEPLOYED\""+since), verify.CheckStates},
		"repo of a record":        {commit, replace(`"repo": "api"`, `"repo": "apx"`), verify.CheckStates},
		"attestations counted":    {commit, replace(`"attested": 2`, `"attested": 1`), verify.CheckAttestations},
		"version of the contract": {commit, replace(`"policy_version": 2`, `"policy_version": 3`), verify.CheckPolicy},
		"author":                  {commit, replace(`"Ada"`, `"Eve"`), verify.CheckFacts},
		"branch":                  {commit, replace(`"branch": "main"`, `"branch": "next"`), verify.CheckFacts},
		"list in a record":        {commit, replace(`"transitions": []`, `"transitions": [{}]`), verify.CheckStates},
		"requirement":             {commit, replace(`"met": true`, `"met": false`), checkPage},
		"transition":              {"commits/*/transitions.json", replace(`"ATTESTED"`, `"DEPLOYED"`), verify.CheckStates},
		"result":                  {record, replace(`"pass"`, `"warn"`), verify.CheckRecord},
		"key of a record":         {record, replace(`"key": "`, `"key": "0`), verify.CheckRecord},
		"commit of another":       {record, replace("0001\"", "0002\""), verify.CheckRecord},
		"time":                    {record, replace(`"recorded_at": "2`, `"recorded_at": "3`), verify.CheckRecord},
		"no record":               {record, remove, verify.CheckStates},
		"envelope":                {"*/*/*/*/envelope.json", replace(`"sig":"`, `"sig":"AAAA`), verify.CheckSignature},
		"no envelope":             {"*/*/*/*/envelope.json", remove, verify.CheckSignature},
		"statement":               {"*/*/*/*/statement.json", flip, verify.CheckRecord},
		"no statement":            {"*/*/*/*/statement.json", remove, verify.CheckDigests},
		"event":                   {event, replace(`"acme"`, `"acmf"`), verify.CheckBody},
		"no event":                {event, remove, verify.CheckBody},
		"no proof":                {proofFile, remove, verify.CheckInclusion},
		"index of a proof":        {proofFile, replace("\nindex ", "\nindex 1"), verify.CheckInclusion},
		"checkpoint":              {evidence.CheckpointFile, replace("\n1", "\n2"), verify.CheckCheckpoint},
		"no checkpoint":           {evidence.CheckpointFile, remove, verify.CheckCheckpoint},
		"key of the log":          {evidence.KeyFile, flip, verify.CheckCheckpoint},
		"contract":                {"policy/v2.json", replace("lint:*", "text:*"), verify.CheckPolicy},
		"no contract":             {"policy/v2.json", remove, verify.CheckPolicy},
		"sha of a record":         {commit, replace(`"sha": "0`, `"sha": "1`), verify.CheckStates},
		"commit twice":            {evidence.ManifestFile, replace("[", `["`+commitID(1)+`",`), verify.CheckStates},
		"digest of a contract":    {"policy/v1.json", replace(`"sha256:`, `"sha256:0`), verify.CheckPolicy},
		"contract of another":     {"policy/v2.json", replace(`"version": 2`, `"version": 3`), verify.CheckPolicy},
		"DN of an identity":       {evidence.IdentitiesFile, replace("cn=ci", "cn=cj"), verify.CheckSignature},
		"identity":                {evidence.IdentitiesFile, replace(`"kind"`, `"email":"a@b","kind"`), verify.CheckIdentity},
		"identity of others":      {evidence.IdentitiesFile, replace(`"acme"`, `"evil"`), verify.CheckIdentity},
		"no identities":           {evidence.IdentitiesFile, remove, verify.CheckIdentity},
		"receipt":                 {"commits/*/receipt.json", replace(`"payload": "`, `"payload": "AAAA`), checkReceipt},
		"page":                    {evidence.PageFile, replace("ATTESTED", "DEPLOYED"), checkPage},
		"no page":                 {evidence.PageFile, remove, checkPage},
		"other commits":           {evidence.ManifestFile, replace("0001\"", "0002\""), checkFiles},
		"other repo":              {evidence.ManifestFile, replace(`"api"`, `"apx"`), verify.CheckStates},
	} {
		t.Run(name, func(t *testing.T) {
			f := filesOf(t, text)
			file := f.named(t, test.file)
			if f[file] = test.change(f[file]); f[file] == nil {
				delete(f, file)
			}
			r, err := p.evidence(f.pack(t))
			must.OK(t, err)
			want(t, r, test.check, verify.Failed, "")
		})
	}

	// With the sums as they were, each changed byte is found.
	for name, content := range filesOf(t, text) {
		f := filesOf(t, text)
		sums := f[evidence.SumsFile]
		if f[name] = flip(content); name == evidence.SumsFile {
			sums = f[name]
		}
		packed := f.packAs(t, sums)
		r, err := p.evidence(packed)
		if err == nil && r.Verified {
			t.Errorf("%s: a changed byte was not found", name)
		}
	}
}

// require replaces the contract with one that requires predicates for ATTESTED.
func (h *host) require(predicates ...string) error {
	_, etag, err := h.admin.Policy(h.t.Context(), "acme", "api")
	if err != nil {
		return err
	}
	var list []string
	for _, p := range predicates {
		list = append(list, fmt.Sprintf(`{"state": "ATTESTED", "predicate": %q}`, p))
	}
	contract := `{"requirements": [` + strings.Join(list, ",") + `]}`
	_, err = h.admin.SetPolicy(h.t.Context(), "acme", "api", []byte(contract), etag)
	return err
}

// A file that no export has is reported, as are those that the sums do not list.
func TestEvidenceExtraFiles(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	text, p := h.export(evidence.Options{}), pinned(h)
	for _, name := range []string{
		"README", "policy/v1.json.sig", "commits/" + commitID(2) + "/record.json", "events/x/y.json",
		"commits/" + commitID(1) + "/attestations/att_1/other.json",
	} {
		f := filesOf(t, text)
		f[name] = []byte("{}")
		r, err := p.evidence(f.pack(t))
		must.OK(t, err)
		want(t, r, checkFiles, verify.Failed, name)
	}
	f := filesOf(t, text)
	sums := f[evidence.SumsFile]
	f["policy/v9.json"] = []byte("{}")
	r, err := p.evidence(f.packAs(t, sums))
	must.OK(t, err)
	want(t, r, checkFiles, verify.Failed, "policy/v9.json is not listed")
}

// What is of other commits is found.
func TestEvidenceOfOtherCommits(t *testing.T) {
	h := newHost(t)
	h.receipt() // its key
	h.attest(commitID(2), "test:go", ledger.Pass)
	f, p := filesOf(t, h.export(evidence.Options{})), pinned(h)
	for name, content := range filesOf(t, h.export(evidence.Options{Since: 1})) {
		if strings.HasPrefix(name, "events/") {
			f[name] = content
		}
	}
	r, err := p.evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckStates, verify.Failed, "which the export is not of")
	want(t, r, verify.CheckAttestations, verify.Failed, "the export does not have att_")

}

// All contracts that can have been applied to a commit are in its export, and checked by the log.
// The first one is in no event.
func TestEvidenceOfContracts(t *testing.T) {
	testenv.From(t, testenv.Push, "takes many seconds")
	h := newHost(t)
	h.receipt() // its key
	must.OK(t, h.require("test:*", "lint:*"))
	must.OK(t, h.require("test:*", "scan:*"))
	h.attest(commitID(3), "test:go", ledger.Pass)
	p := pinned(h)
	r, err := p.evidence(h.export(evidence.Options{Commit: commitID(3)}))
	must.OK(t, err)
	want(t, r, verify.CheckPolicy, verify.OK, "1 version")
	f := filesOf(t, h.export(evidence.Options{Commit: commitID(1)}))
	r, err = p.evidence(f.pack(t))
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckPolicy, verify.OK, "3 versions")

	for name, status := range map[string]verify.Status{
		"policy/v1.json": verify.NotChecked, "policy/v2.json": verify.Failed,
	} {
		var v policy.Policy
		must.OK(t, json.Unmarshal(f[name], &v))
		v.Requirements = v.Requirements[:1]
		v.Digest = v.Contract.Digest()
		changed := maps.Clone(f)
		changed[name], err = json.Marshal(v)
		must.OK(t, err)
		r, err = p.evidence(changed.pack(t))
		must.OK(t, err)
		want(t, r, verify.CheckPolicy, status, "")
	}
}

// What the ledger has pruned is not checked; what somebody has taken away fails.
func TestEvidencePruned(t *testing.T) {
	h := newHostAgo(t, 48*time.Hour)
	h.receipt() // its key
	a := h.attest(commitID(1), "lint:go", ledger.Pass)
	h.prune(ledger.RetentionChange{Envelopes: new(ledger.MinRetention)})
	h.attest(commitID(1), "scan:go", ledger.Pass)
	p := pinned(h)
	text := h.export(evidence.Options{})
	r, err := p.evidence(text)
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.OK, "1 attestation")
	want(t, r, verify.CheckSignature, verify.NotChecked, "2 attestations: the ledger has pruned the envelope")
	want(t, r, verify.CheckRecord, verify.OK, "3 attestations")
	want(t, r, checkPage, verify.OK, "")

	f := filesOf(t, text) // the event still shows the result
	record := f.named(t, "*/*/*/"+a.ID+"/record.json")
	f[record] = bytes.Replace(f[record], []byte(`"pass"`), []byte(`"fail"`), 1)
	r, err = p.evidence(f.pack(t))
	must.OK(t, err)
	want(t, r, verify.CheckRecord, verify.Failed, "result")

	h.prune(ledger.RetentionChange{Events: new(ledger.MinRetention)})
	r, err = p.evidence(h.export(evidence.Options{}))
	must.OK(t, err)
	wantVerified(t, r)
	want(t, r, verify.CheckSignature, verify.NotChecked, "the ledger has pruned")
	want(t, r, verify.CheckBody, verify.NotChecked, "2 events")
	want(t, r, verify.CheckStates, verify.NotChecked, "does not list")
}
