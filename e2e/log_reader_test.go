package e2e_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A logReader reads a log. It follows the texts of C2SP (signed-note, tlog-checkpoint and
// tlog-tiles) and RFC 6962, and shares no code with ledgerd.
type logReader struct {
	t    *testing.T
	url  string // without /checkpoint
	vkey string
	get  func(url string) ([]byte, error)
}

// getAs returns a function that gets a URL with a token.
func getAs(t *testing.T, token string) func(url string) ([]byte, error) {
	return func(url string) ([]byte, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %d: %s", url, response.StatusCode, body)
		}
		return body, err
	}
}

// A checkpoint is the size and the root of a log.
type checkpoint struct {
	size int64
	root [32]byte
}

// checkpoint reads the newest checkpoint, and verifies the signature of the log.
func (r *logReader) checkpoint() (checkpoint, error) {
	note, err := r.get(r.url + "/checkpoint")
	if err != nil {
		return checkpoint{}, err
	}
	return openCheckpoint(string(note), r.vkey)
}

// openCheckpoint verifies a signed checkpoint.
func openCheckpoint(note, vkey string) (c checkpoint, err error) {
	end := strings.LastIndex(note, "\n\n")
	if end < 0 {
		return c, fmt.Errorf("%q has no signatures", note)
	}
	text := note[:end+1]
	name, id, key, err := parseKey(vkey)
	if err != nil {
		return c, err
	}
	if !slices.ContainsFunc(strings.Split(note[end+2:], "\n"), func(line string) bool {
		encoded, ok := strings.CutPrefix(line, "\u2014 "+name+" ")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		return ok && err == nil && len(signature) == 4+ed25519.SignatureSize && bytes.Equal(signature[:4], id) &&
			ed25519.Verify(key, []byte(text), signature[4:])
	}) {
		return c, fmt.Errorf("the log has not signed %q", note)
	}

	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != 3 || lines[0] != name {
		return c, fmt.Errorf("%q is not a checkpoint of %s", text, name)
	}
	if c.size, err = strconv.ParseInt(lines[1], 10, 64); err != nil {
		return c, err
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err == nil && copy(c.root[:], root) != len(c.root) {
		err = fmt.Errorf("the root %q is too short", lines[2])
	}
	return c, err
}

// parseKey parses a verifier key of type Ed25519.
func parseKey(vkey string) (name string, id []byte, key ed25519.PublicKey, err error) {
	parts := strings.SplitN(vkey, "+", 3)
	if len(parts) != 3 {
		return "", nil, nil, fmt.Errorf("%q is not a verifier key", vkey)
	}
	encoded, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(encoded) != 1+ed25519.PublicKeySize || encoded[0] != 1 {
		return "", nil, nil, fmt.Errorf("%q is not an Ed25519 key", vkey)
	}
	hash := sha256.Sum256(slices.Concat([]byte(parts[0]+"\n"), encoded))
	if fmt.Sprintf("%x", hash[:4]) != parts[1] {
		return "", nil, nil, fmt.Errorf("the ID of %q is wrong", vkey)
	}
	return parts[0], hash[:4], encoded[1:], nil
}

// entries reads the entries of a log of the given size.
func (r *logReader) entries(size int64) (entries [][]byte, err error) {
	for n := int64(0); n*256 < size; n++ {
		width := min(size-n*256, 256)
		bundle, err := r.get(r.url + "/tile/entries/" + tileNumber(n, width))
		if err != nil {
			return nil, err
		}

		for range width {
			if len(bundle) < 2 {
				return nil, errors.New("an entry bundle is too short")
			}
			length := int(binary.BigEndian.Uint16(bundle))
			if bundle = bundle[2:]; len(bundle) < length {
				return nil, errors.New("an entry bundle is too short")
			}
			entries, bundle = append(entries, bundle[:length]), bundle[length:]
		}
		if len(bundle) > 0 {
			return nil, errors.New("an entry bundle is too long")
		}
	}
	return entries, nil
}

// tileNumber returns the end of the path of a tile.
func tileNumber(n, width int64) string {
	path := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		path = fmt.Sprintf("x%03d/%s", n%1000, path)
	}
	if width < 256 {
		path += fmt.Sprintf(".p/%d", width)
	}
	return path
}

// check reads all of a log. It returns its entries, unless they and the tiles do not make up
// the root of the newest checkpoint.
func (r *logReader) check() ([][]byte, error) {
	c, err := r.checkpoint()
	if err != nil {
		return nil, err
	}
	entries, err := r.entries(c.size)
	if err != nil {
		return nil, err
	}
	hashes := make([][32]byte, len(entries))
	for i, entry := range entries {
		hashes[i] = sha256.Sum256(append([]byte{0}, entry...))
	}
	if root := treeRoot(hashes); root != c.root {
		return nil, fmt.Errorf("the entries have the root %x, and the checkpoint %x", root, c.root)
	}

	for level := 0; len(hashes) > 0; level++ {
		var above [][32]byte
		for n := 0; n*256 < len(hashes); n++ {
			want := hashes[n*256 : min(len(hashes), n*256+256)]
			got, err := r.get(fmt.Sprintf("%s/tile/%d/%s", r.url, level, tileNumber(int64(n), int64(len(want)))))
			if err != nil {
				return nil, err
			}
			var all []byte
			for _, hash := range want {
				all = append(all, hash[:]...)
			}
			if !bytes.Equal(got, all) {
				return nil, fmt.Errorf("tile %d of level %d does not fit the entries", n, level)
			}
			if len(want) == 256 {
				above = append(above, treeRoot(want))
			}
		}
		hashes = above
	}
	return entries, nil
}

// treeRoot computes the root of a tree over the hashes of its leaves (RFC 6962, section 2.1).
func treeRoot(hashes [][32]byte) [32]byte {
	if len(hashes) == 0 {
		return sha256.Sum256(nil)
	}
	if len(hashes) == 1 {
		return hashes[0]
	}
	k := 1
	for k*2 < len(hashes) {
		k *= 2
	}
	left, right := treeRoot(hashes[:k]), treeRoot(hashes[k:])
	return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
}
