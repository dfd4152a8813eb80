package record

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/cmd/internal/cli"
	"github.com/ledgerd/ledgerd/internal/terminal"
	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/attestation"
)

// An imageIndex is an OCI image index or a Docker manifest list, with what is read of it:
// https://github.com/opencontainers/image-spec/blob/main/image-index.md.
type imageIndex struct {
	Manifests []struct {
		Digest   string `json:"digest"`
		Platform struct {
			OS           string `json:"os"`
			Architecture string `json:"architecture"`
			Variant      string `json:"variant"`
		} `json:"platform"`
		Annotations map[string]string `json:"annotations"`
	} `json:"manifests"`
}

// indexedImages returns the images of the index in a file.
func indexedImages(p *cli.Program, file string) ([]attestation.Artifact, error) {
	content, err := p.ReadFile(file)
	if err != nil {
		return nil, err
	}
	images, err := readImageIndex(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	terminal.Printf(p.Hints(), "Names the index sha256:%s and %s.\n", images[0].SHA256,
		terminal.Plural(int64(len(images)-1), "platform"))
	return images, nil
}

// readImageIndex returns the images of an index as it is in a registry: the index itself by its digest, and those of
// its platforms. Manifests of attestations, which BuildKit adds, are left out.
func readImageIndex(content []byte) (images []attestation.Artifact, err error) {
	var index imageIndex
	if err := json.Unmarshal(content, &index); err != nil || index.Manifests == nil {
		return nil, errors.New("not an image index, which has manifests (use the output of " +
			"'docker buildx imagetools inspect --raw IMAGE' or 'crane manifest IMAGE')")
	}

	sum := sha256.Sum256(content)
	images = []attestation.Artifact{{Name: "index", SHA256: hex.EncodeToString(sum[:])}}
	for i, m := range index.Manifests {
		if m.Annotations["vnd.docker.reference.type"] == "attestation-manifest" {
			continue
		}
		digest, err := ledger.ParseDigest(m.Digest)
		if err != nil {
			return nil, fmt.Errorf("invalid manifests[%d].digest: %w", i, err)
		}
		algorithm, value, _ := strings.Cut(digest, ":")
		if algorithm != "sha256" {
			return nil, fmt.Errorf("invalid manifests[%d].digest: %s is not supported (use sha256)", i, algorithm)
		}

		name := m.Platform.OS + "/" + m.Platform.Architecture
		if m.Platform.Variant != "" {
			name += "/" + m.Platform.Variant
		}
		images = append(images, attestation.Artifact{Name: name, SHA256: value})
	}

	if len(images) > ledger.MaxArtifacts {
		return nil, fmt.Errorf("it has %d manifests: a statement links at most %d artifacts, with the index", len(images)-1,
			ledger.MaxArtifacts)
	}
	return images, nil
}
