package proof

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// proofHeader is the first line of a proof.
const proofHeader = "c2sp.org/tlog-proof@v1"

// MaxProof is the maximum length of a proof in bytes.
const MaxProof = MaxCheckpoint + 64<<10

// maxPath is the maximum number of hashes of a proof.
const maxPath = 63

// An Inclusion is a proof that a leaf is in a log (C2SP tlog-proof).
type Inclusion struct {
	// Extra is what the verifier needs in addition to the proof: an Opening, as JSON.
	Extra []byte
	Index int64
	Path  []tlog.Hash
	// Checkpoint is the signed checkpoint of the log.
	Checkpoint []byte
}

// Format returns the text form of the proof.
func (p Inclusion) Format() []byte {
	var b strings.Builder
	b.WriteString(proofHeader + "\n")
	if len(p.Extra) > 0 {
		b.WriteString("extra " + base64.StdEncoding.EncodeToString(p.Extra) + "\n")
	}
	fmt.Fprintf(&b, "index %d\n", p.Index)
	for _, hash := range p.Path {
		b.WriteString(base64.StdEncoding.EncodeToString(hash[:]) + "\n")
	}
	b.WriteString("\n")
	b.Write(p.Checkpoint)
	return []byte(b.String())
}

// ParseInclusion parses a proof. It accepts only what Format writes, and checks neither
// the path nor the checkpoint.
func ParseInclusion(text []byte) (p Inclusion, err error) {
	if len(text) > MaxProof {
		return p, fmt.Errorf("the proof has more than %d bytes", MaxProof)
	}
	head, checkpoint, ok := strings.Cut(string(text), "\n\n")
	lines := strings.Split(head, "\n")
	if !ok || lines[0] != proofHeader {
		return p, fmt.Errorf("parse proof: want the line %s, the proof, an empty line and the checkpoint", proofHeader)
	}
	p.Checkpoint, lines = []byte(checkpoint), lines[1:]
	if len(lines) > 0 && strings.HasPrefix(lines[0], "extra ") {
		if p.Extra, err = decode(strings.TrimPrefix(lines[0], "extra ")); err != nil || len(p.Extra) == 0 {
			return p, errors.New("parse proof: the line extra is not base64")
		}
		lines = lines[1:]
	}

	index, ok := "", false
	if len(lines) > 0 {
		index, ok = strings.CutPrefix(lines[0], "index ")
	}
	if p.Index, err = strconv.ParseInt(index, 10, 64); !ok || err != nil || strconv.FormatInt(p.Index, 10) != index ||
		p.Index < 0 {
		return p, errors.New("parse proof: want the line 'index N'")
	}
	if len(lines)-1 > maxPath {
		return p, fmt.Errorf("parse proof: it has more than %d hashes", maxPath)
	}
	for _, line := range lines[1:] {
		hash, err := decode(line)
		if err != nil || len(hash) != tlog.HashSize {
			return p, fmt.Errorf("parse proof: %.80q is not a SHA-256 in base64", line)
		}
		p.Path = append(p.Path, tlog.Hash(hash))
	}
	return p, nil
}

// Verify checks that a leaf with this hash is in the tree of a checkpoint, which the caller
// got from OpenCheckpoint on p.Checkpoint.
func (p Inclusion) Verify(leaf tlog.Hash, c Checkpoint) error {
	if p.Index >= c.Size {
		return fmt.Errorf("leaf %d is not in a log of %d leaves", p.Index, c.Size)
	}
	if err := tlog.CheckRecord(p.Path, c.Size, c.Root, p.Index, leaf); err != nil {
		return fmt.Errorf("leaf %d is not in the log: its path does not lead to the root of the checkpoint", p.Index)
	}
	return nil
}
