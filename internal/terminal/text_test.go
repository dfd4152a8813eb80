package terminal

import "testing"

func TestQuoteShell(t *testing.T) {
	for word, want := range map[string]string{
		"ledger.db":           "ledger.db",
		"/srv/ledgerd/a-b.db": "/srv/ledgerd/a-b.db",
		"":                    "''",
		"two words":           "'two words'",
		"Ada's":               `'Ada'\''s'`,
		"$HOME":               "'$HOME'",
		"~":                   "'~'",
		"a;b":                 "'a;b'",
	} {
		if got := QuoteShell(word); got != want {
			t.Errorf("QuoteShell(%q) = %s, want %s", word, got, want)
		}
	}
}
