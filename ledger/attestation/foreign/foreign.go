// Package foreign names documents that people send in place of an envelope, and says what to send instead.
package foreign

import (
	"bytes"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Describe says what a document is that people send in place of an envelope or a statement, and what to
// send instead. It returns "" if it does not know the document.
func Describe(document []byte) string {
	text := bytes.TrimSpace(document)
	if !bytes.HasPrefix(text, []byte("{")) {
		return describeText(text)
	}
	var members map[string]jsontext.Value
	if json.Unmarshal(text, &members) != nil {
		return ""
	}
	for _, s := range shapes {
		if s.matches(members) {
			return s.what
		}
	}
	if isRekorEntry(members) {
		return rekorEntry
	}
	return ""
}

// A shape is a kind of JSON document.
type shape struct {
	// members are the names of members that it has, and what is part of their values.
	members map[string]string
	what    string
}

func (s *shape) matches(members map[string]jsontext.Value) bool {
	for name, part := range s.members {
		if value, ok := members[name]; !ok || !bytes.Contains(value, []byte(part)) {
			return false
		}
	}
	return true
}

// What follows the name of a kind.
const (
	pypi = " of PyPI, which has the parts of a Sigstore bundle under other names (convert it with the Python " +
		"package pypi-attestations: Attestation.to_bundle)"
	metablock = ", whose signature is not about a statement (put its member signed into a statement as the " +
		"predicate, with the predicateType https://in-toto.io/attestation/link/v0.3, and sign that)"
	provenance = ", which is not signed (make it the predicate of a statement about the commit, and sign that: " +
		"ledgerd attest --statement FILE --key KEY)"
	image = ", which names files but does not contain them (send the envelopes or bundles that it names: cosign " +
		"download attestation IMAGE; what BuildKit attests is not signed)"
	rekorEntry = "an entry of the transparency log Rekor, which has digests but not the statement (send the " +
		"bundle, which has the entry in it)"
)

// report returns what a report without a signature is, and how to sign it.
func report(what, predicateType string) string {
	return what + ", which is not signed (make it the predicate of a statement about the commit, with the predicateType " +
		predicateType + ", and sign that: ledgerd attest --statement FILE --key KEY)"
}

var shapes = []shape{
	{map[string]string{"verification_material": "", "envelope": ""}, "an attestation" + pypi},
	{map[string]string{"attestation_bundles": ""}, "a provenance object" + pypi},
	{map[string]string{"signed": `"layout"`, "signatures": ""},
		"an in-toto layout, which says nothing of a commit (send what was signed in its steps)"},
	{map[string]string{"signed": "", "signatures": ""}, "in-toto metadata from before DSSE" + metablock},
	{map[string]string{"_type": `"link"`}, "an in-toto link without a signature" + metablock},
	{map[string]string{"Body": "", "LogIndex": ""}, rekorEntry},
	{map[string]string{"certificateAuthorities": ""},
		"a trusted root (set it: ledgerd trusted-root set NAME --file FILE)"},

	{map[string]string{"buildDefinition": "", "runDetails": ""},
		"SLSA provenance v1 without a statement" + provenance},
	{map[string]string{"buildType": "", "builder": ""}, "SLSA provenance v0.2 without a statement" + provenance},
	{map[string]string{"SLSA": ""}, "provenance of BuildKit as buildx prints it" + provenance},
	{map[string]string{"buildx.build.provenance": ""}, "the metadata of a build by buildx, with provenance" + provenance},
	{map[string]string{"schemaVersion": "", "layers": ""}, "the manifest of an image or of its attestations" + image},
	{map[string]string{"schemaVersion": "", "manifests": ""}, "the index of an image" + image},
	{map[string]string{"imageLayoutVersion": ""}, "the file oci-layout of an image" + image},

	{map[string]string{"spdxVersion": ""}, report("an SBOM (SPDX)", "https://spdx.dev/Document")},
	{map[string]string{"@context": "spdx.org"}, report("an SBOM (SPDX 3)", "https://spdx.dev/Document")},
	{map[string]string{"bomFormat": "CycloneDX"}, report("an SBOM (CycloneDX)", "https://cyclonedx.org/bom")},
	{map[string]string{"runs": "", "version": "2.1"},
		report("a report in SARIF", "https://in-toto.io/attestation/sarif/v0.1")},
	{map[string]string{"@context": "openvex.dev"}, report("an OpenVEX document", "https://openvex.dev/ns/v0.2.0")},
}

// isRekorEntry reports whether the members are those of a response of Rekor: the entry under its UUID.
func isRekorEntry(members map[string]jsontext.Value) bool {
	if len(members) != 1 {
		return false
	}
	uuid := slices.Collect(maps.Keys(members))[0]
	_, err := hex.DecodeString(uuid)
	entry := shape{members: map[string]string{"body": "", "logIndex": ""}}
	var of map[string]jsontext.Value
	return err == nil && len(uuid) >= 64 && json.Unmarshal(members[uuid], &of) == nil && entry.matches(of)
}

// describeText is Describe for a document that is not a JSON object.
func describeText(text []byte) string {
	for _, t := range []struct{ start, part, what string }{
		{"<", "<testsuite", "a report in JUnit XML, which is not signed and names no commit (record how the tests went: " +
			"ledgerd attest --predicate test:NAME --status pass --key KEY, or the tests after --)"},
		{"<", "cyclonedx.org", report("an SBOM (CycloneDX XML; use JSON)", "https://cyclonedx.org/bom")},
		{"<", "", "XML (send a DSSE envelope or a Sigstore bundle, which are JSON)"},
		{"SPDXVersion:", "", report("an SBOM (SPDX; use JSON)", "https://spdx.dev/Document")},
		{"-----BEGIN ", "", "PEM (keys and certificates are registered with 'ledgerd identity add')"},
		{"\x1f\x8b", "", "a gzip file (decompress it)"},
		{"PK\x03\x04", "", "a zip file (unpack it)"},
	} {
		if bytes.HasPrefix(text, []byte(t.start)) && bytes.Contains(text, []byte(t.part)) {
			return t.what
		}
	}
	return ""
}
