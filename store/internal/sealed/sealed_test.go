package sealed

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ledgerd/ledgerd/internal/must"
)

const owner = "whk_01JD3X0V6Q8Z2M4N5P7R9T1W3Y"

// line returns a key as it is in a file.
func line(n byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{n}, keySize)) }

func read(t testing.TB, lines ...string) Keys {
	t.Helper()
	k, err := ReadKeys(strings.NewReader(strings.Join(lines, "\n")))
	must.OK(t, err)
	return k
}

func TestReadKeys(t *testing.T) {
	var many []string
	for n := range byte(maxKeys + 1) {
		many = append(many, line(n))
	}

	padded := func(size int) string { return line(1) + "\n" + strings.Repeat("#", size-len(line(1))-1) }
	for _, test := range []struct {
		name, text string
		keys       int
		want       string // in the error
	}{
		{"one key", line(1), 1, ""},
		{"a line break at the end", line(1) + "\n", 1, ""},
		{"comments, empty lines and line breaks of Windows", "# new\r\n" + line(1) + "\r\n\r\n  # old\r\n " + line(2), 2, ""},
		{"as many as can be", strings.Join(many[:maxKeys], "\n"), maxKeys, ""},
		{"one more", strings.Join(many, "\n"), 0, "line 17: more than 16 keys"},
		{"as large as can be", padded(maxBytes), 1, ""},
		{"a byte more", padded(maxBytes + 1), 0, "more than 64 KiB"},
		{"empty", "", 0, "no key (create one"},
		{"only comments", "# none\n", 0, "no key (create one"},
		{"twice the same", line(1) + "\n\n" + line(2) + "\n" + line(1), 0, "line 4: the same key as on line 1"},
		{"not base64", line(1) + "\npassword", 0, "line 2: not a key of 32 bytes in base64"},
		{"hexadecimal", strings.Repeat("ab", keySize), 0, "line 1: not a key of 32 bytes"},
		{"a byte too few", base64.StdEncoding.EncodeToString(make([]byte, keySize-1)), 0, "not a key of 32 bytes"},
		{"a byte too many", base64.StdEncoding.EncodeToString(make([]byte, keySize+1)), 0, "not a key of 32 bytes"},
		{"a comment behind the key", line(1) + " # mine", 0, "not a key of 32 bytes"},
		{"binary", string(bytes.Repeat([]byte{0xff}, keySize)), 0, "not a key of 32 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k, err := ReadKeys(strings.NewReader(test.text))
			if len(k.list) != test.keys {
				t.Errorf("%d keys, want %d", len(k.list), test.keys)
			}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("the error is %v, want %q", err, test.want)
			case err != nil && (strings.Contains(err.Error(), "password") || strings.Contains(err.Error(), line(1))):
				t.Errorf("the error shows what is in the file: %v", err)
			}
		})
	}
}

func TestSealAndOpen(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	first, both, other := read(t, line(1)), read(t, line(2), line(1)), read(t, line(3))
	stored := first.Seal(secret, owner)
	_, box, _ := strings.Cut(strings.TrimPrefix(stored, prefix), ":")
	id := first.list[0].id

	for _, test := range []struct {
		name          string
		keys          Keys
		stored, owner string
		want          string
		why           string // in the error
	}{
		{"the same key", first, stored, owner, secret, ""},
		{"the second key", both, stored, owner, secret, ""},
		{"plain text, with a key", first, secret, owner, secret, ""},
		{"plain text, without keys", Keys{}, secret, owner, secret, ""},
		{"no secret", first, "", owner, "", ""},
		{"another key", other, stored, owner, "", "with the key " + id},
		{"no keys", Keys{}, stored, owner, "", "with the key " + id},
		{"another webhook", first, stored, owner[:len(owner)-1] + "Z", "", "was changed, or is not of whk_"},
		{"the id of another key", both, prefix + both.list[0].id + ":" + box, owner, "", "was changed"},
		{"a changed byte", first, prefix + id + ":" + string(box[0]^1) + box[1:], owner, "", ""},
		{"cut off", first, stored[:len(stored)-8], owner, "", ""},
		{"no box", first, prefix + id + ":", owner, "", "was changed"},
		{"no base64", first, prefix + id + ":%", owner, "", "not in base64"},
		{"no key id", first, prefix + box, owner, "", "names no key"},
		{"a key id in capitals", first, prefix + strings.ToUpper(id) + ":" + box, owner, "", "names no key"},
		{"only the prefix", first, prefix, owner, "", "names no key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.keys.Open(test.stored, test.owner)
			if got != test.want || (err == nil) != (test.want != "" || test.stored == "") {
				t.Fatalf("Open returned %q, %v; want %q", got, err, test.want)
			}
			if err != nil && (!strings.Contains(err.Error(), test.why) || strings.Contains(err.Error(), box)) {
				t.Errorf("the error is %q, want %q", err, test.why)
			}
			if isMissing := strings.HasPrefix(test.why, "with the key"); errors.Is(err, ErrNoKey) != isMissing {
				t.Errorf("ErrNoKey is %t for %v", !isMissing, err)
			}
		})
	}
}

func TestIsSealed(t *testing.T) {
	first, both := read(t, line(1)), read(t, line(2), line(1))
	stored := first.Seal("whsec_x", owner)
	for _, test := range []struct {
		name   string
		keys   Keys
		stored string
		want   bool
	}{
		{"by the first key", first, stored, true},
		{"by the second key", both, stored, false},
		{"plain text", first, "whsec_x", false},
		{"no secret", first, "", true},
		{"without keys, plain text", Keys{}, "whsec_x", true},
	} {
		if got := test.keys.IsSealed(test.stored); got != test.want {
			t.Errorf("%s: IsSealed is %t", test.name, got)
		}
	}
}

// TestForm pins the form in databases: the id of the key, nonce, ciphertext and tag.
func TestForm(t *testing.T) {
	k := read(t, line(1))
	stored := k.Seal("whsec_x", owner)
	digest := sha256.Sum256(bytes.Repeat([]byte{1}, keySize))
	start := fmt.Sprintf("enc1:%x:", digest[:4])
	text, ok := strings.CutPrefix(stored, start)
	box, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(box) != 12+len("whsec_x")+16 {
		t.Errorf("stored as %s, want %s and 35 bytes in base64", stored, start)
	}
	if k.Seal("whsec_x", owner) == stored {
		t.Error("the nonce is used twice")
	}
	if plain := (Keys{}).Seal("whsec_x", owner); plain != "whsec_x" {
		t.Errorf("without keys stored as %s", plain)
	}

	// A database of an earlier release must stay readable.
	const earlier = "enc1:72cd6e84:xKYfKiNl5Orz3/V/r94mvfEBKS8jjTfrTOSWjAmfJKOeNbk="
	if got, err := k.Open(earlier, owner); got != "whsec_x" {
		t.Errorf("Open returned %q, %v", got, err)
	}
}

// FuzzOpen checks that a text which Seal has not returned is refused, or is plain text.
func FuzzOpen(f *testing.F) {
	k := read(f, line(1))
	good := k.Seal("whsec_x", owner)
	f.Add(good)
	f.Add("enc1:")
	f.Add("whsec_x")
	f.Add(good[:len(good)-4])
	f.Fuzz(func(t *testing.T, stored string) {
		got, err := k.Open(stored, owner)
		switch {
		case !strings.HasPrefix(stored, prefix):
			if got != stored || err != nil {
				t.Errorf("plain text: %q, %v", got, err)
			}
		case err == nil && got != "whsec_x":
			t.Errorf("opened %q as %q", stored, got)
		case err != nil && got != "":
			t.Errorf("an error with %q", got)
		}
	})
}

// FuzzReadKeys checks that a file with keys is refused, or has keys that work.
func FuzzReadKeys(f *testing.F) {
	f.Add([]byte(line(1) + "\n# old\n" + line(2)))
	f.Add([]byte("\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := ReadKeys(bytes.NewReader(text))
		if (err == nil) != k.Any() || len(k.list) > maxKeys {
			t.Fatalf("%d keys, %v", len(k.list), err)
		}
		if err != nil {
			return
		}
		if got, err := k.Open(k.Seal("whsec_x", owner), owner); got != "whsec_x" || err != nil {
			t.Errorf("opened as %q, %v", got, err)
		}
	})
}
