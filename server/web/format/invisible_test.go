package format

import "testing"

// Untrusted text is shown completely and in order, both as plain text and in
// statements, where the result is still JSON.
func TestInvisibleCharactersAreShown(t *testing.T) {
	for _, test := range []struct{ text, visible, escaped string }{
		{"plain, größer, שלום, 😀", "plain, größer, שלום, 😀", "plain, größer, שלום, 😀"},
		{"a\tb\nc", "a\tb\nc", "a\tb\nc"},
		{"a\r\nb", "a\nb", "a\r\nb"},
		{"\u202eabc\u202c", "[U+202E]abc[U+202C]", `\u202eabc\u202c`},
		{"a\u200bb\ufeffc\u00add", "a[U+200B]b[U+FEFF]c[U+00AD]d", `a\u200bb\ufeffc\u00add`},
		{"\u2060\u180e\u3164\u115f", "[U+2060][U+180E][U+3164][U+115F]", `\u2060\u180e\u3164\u115f`},
		{"\u2028\u0085\ufe0f", "[U+2028][U+0085][U+FE0F]", `\u2028\u0085\ufe0f`},
		{"x\U000e0041", "x[U+E0041]", `x\udb40\udc41`},
		{"\x00\x1b\x7f", "␀␛␡", `\u0000\u001b\u007f`},
	} {
		if got := Visible(test.text); got != test.visible {
			t.Errorf("Visible(%+q) = %q, want %q", test.text, got, test.visible)
		}
		if got := EscapeInvisible(test.text); got != test.escaped {
			t.Errorf("EscapeInvisible(%+q) = %q, want %q", test.text, got, test.escaped)
		}
	}
}
