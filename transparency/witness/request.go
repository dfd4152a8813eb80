package witness

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/ledgerd/ledgerd/ledger/proof"
)

const (
	// MaxRequest is the maximum size of an add-checkpoint request in bytes. It has room for
	// 63 hashes and a note with 16 post-quantum signatures.
	MaxRequest = 128 << 10
	// maxProof is the maximum number of hashes in a consistency proof.
	maxProof = 63
)

// A request is the body of an add-checkpoint request.
type request struct {
	old   int64
	proof tlog.TreeProof
	note  []byte
}

// format returns the body.
func (r request) format() []byte {
	b := fmt.Appendf(nil, "old %d\n", r.old)
	for _, hash := range r.proof {
		b = append(base64.StdEncoding.AppendEncode(b, hash[:]), '\n')
	}
	b = append(b, '\n')
	return append(b, r.note...)
}

// parseRequest parses a body. It accepts only what format writes.
func parseRequest(body []byte) (r request, err error) {
	if len(body) > MaxRequest {
		return r, fmt.Errorf("it has more than %d bytes", MaxRequest)
	}
	head, text, ok := bytes.Cut(body, []byte("\n\n"))
	if !ok {
		return r, errors.New("no empty line before the checkpoint")
	}
	first, rest, _ := strings.Cut(string(head), "\n")
	size, ok := strings.CutPrefix(first, "old ")
	if !ok {
		return r, fmt.Errorf("the first line is %.100q: want old and the size", first)
	}
	if r.old, err = parseSize(size); err != nil {
		return r, fmt.Errorf("the old size: %w", err)
	}

	for line := range strings.Lines(rest) {
		if len(r.proof) == maxProof {
			return r, fmt.Errorf("the proof has more than %d lines", maxProof)
		}
		hash, err := parseHash(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return r, fmt.Errorf("line %d of the proof: %w", len(r.proof)+1, err)
		}
		r.proof = append(r.proof, hash)
	}
	r.note = text
	if !bytes.Equal(r.format(), body) {
		return r, errors.New("a line of the proof is empty")
	}
	return r, nil
}

// maxTree is the largest size of a tree, so that computing with sizes cannot overflow.
const maxTree = math.MaxInt64 >> proof.TileHeight

// parseSize parses the decimal size of a tree.
func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxTree || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%.100q is not the decimal size of a tree, or too large", text)
	}
	return n, nil
}

func parseHash(text string) (tlog.Hash, error) {
	hash, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(hash) != tlog.HashSize || base64.StdEncoding.EncodeToString(hash) != text {
		return tlog.Hash{}, fmt.Errorf("%.100q is not the base64 of a hash", text)
	}
	return tlog.Hash(hash), nil
}

// parseCheckpoint parses the text of a checkpoint, which may have extension lines.
func parseCheckpoint(text string) (c proof.Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[len(lines)-1] != "" {
		return c, errors.New("want lines with origin, size and root hash")
	}
	for i, line := range lines[:len(lines)-1] {
		if line == "" {
			return c, fmt.Errorf("line %d is empty", i+1)
		}
	}

	c.Origin = lines[0]
	if c.Size, err = parseSize(lines[1]); err != nil {
		return c, fmt.Errorf("line 2: %w", err)
	}
	if c.Root, err = parseHash(lines[2]); err != nil {
		return c, fmt.Errorf("line 3: %w", err)
	}
	return c, nil
}
