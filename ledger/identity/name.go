package identity

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/ledgerd/ledgerd/ledger"
)

// AuthorNames returns the names and e-mail addresses of authors in the form of FoldName, and what
// else they may mean: @eve is an account of any public forge, and a host has a form in ASCII.
func AuthorNames(authors []ledger.Author) []string {
	names := make([]string, 0, 2*len(authors))
	for _, a := range authors {
		for _, name := range []string{FoldName(a.Name), FoldName(a.Email)} {
			if name == "" {
				continue
			}
			names = append(names, name)

			account, host, isAddress := strings.Cut(name, "@")
			switch {
			case !isAddress:
			case account == "" && isAccount(host):
				names = append(names, host)
				for _, f := range publicForges {
					names = append(names, LoginAt(f.host, host))
				}
			default:
				if other := otherHost(host); other != host {
					names = append(names, FoldName(account+"@"+other))
				}
			}
		}
	}
	return names
}

// otherHost returns a host with an internationalized name in its other form, Unicode or ASCII.
func otherHost(host string) string {
	convert := idna.ToASCII
	if isASCII(host) {
		if !strings.Contains(host, "xn--") {
			return host
		}
		convert = idna.ToUnicode
	}
	if other, err := convert(host); err == nil {
		return other
	}
	return host
}

// Dropped returns the former names of a signer, in the form of FoldName, without the present ones: the
// CN, and the names that all identities with the DN have, revoked ones too.
func Dropped(dn DN, former, names []string) (dropped []string) {
	has := map[string]bool{"": true, FoldName(dn.CN): true}
	for _, name := range names {
		has[FoldName(name)] = true
	}
	for _, name := range former {
		if name = FoldName(name); !has[name] {
			has[name] = true
			dropped = append(dropped, name)
		}
	}
	return dropped
}

// FoldName returns a name, an e-mail address or a login in the form in which authors are
// compared with signers: folded, without brackets, blanks and invisible characters. An
// address has no plus tag, and a no-reply address of a forge is the login, which keeps brackets as in
// dependabot[bot]. It is empty if the name names nobody. Databases store this form, so changing it
// takes a migration.
func FoldName(name string) string {
	if ledger.NamesNobody(name) {
		return ""
	}
	text := foldText(name)
	if !strings.ContainsAny(text, "@:") {
		return withoutBrackets(text)
	}
	return foldAddress(text)
}

// withoutBrackets returns a text without square brackets. Others are gone.
func withoutBrackets(text string) string {
	if !strings.ContainsAny(text, "[]") {
		return text
	}
	return strings.NewReplacer("[", "", "]", "").Replace(text)
}

func foldText(name string) string {
	if !isASCII(name) {
		return strings.Map(foldRune, FoldText(name))
	}
	return strings.Map(foldASCII, name) // fast, since most names have only ASCII
}

// foldAddress removes the plus tag of an e-mail address, and returns the login of a no-reply
// address: GitHub's are ID+eve@users.noreply.github.com and, before 2017, without the ID;
// GitLab's are ID-eve@users.noreply.gitlab.com; those of Gitea and Forgejo are eve@noreply.HOST.
// An address may follow mailto:, have quotes, and a host that ends in a dot. It returns other text
// without brackets.
func foldAddress(name string) string {
	account, host, ok := strings.Cut(name, "@")
	if !ok {
		if forge, account, _ := strings.Cut(name, ":"); isForge(forge) && isAccount(account) {
			return name
		}
		return withoutBrackets(name)
	}
	account = strings.Trim(strings.TrimLeft(strings.TrimPrefix(account, "mailto:"), "["), `"`)
	host = strings.TrimRight(withoutBrackets(strings.ReplaceAll(host, "。", ".")), ".")
	forge, isUsers := strings.CutPrefix(host, "users.noreply.")
	isLogin := isUsers
	if !isUsers {
		forge, isLogin = strings.CutPrefix(host, "noreply.")
	}

	if isLogin {
		account = withoutID(account, "+")
	}
	if isUsers && forge != "github.com" {
		account = withoutID(account, "-")
	}
	if tagged, _, _ := strings.Cut(account, "+"); tagged != "" {
		account = tagged
	}
	if isLogin && account != "" && forge != "" {
		return LoginAt(forge, account)
	}
	return withoutBrackets(account) + "@" + host
}

// withoutID returns an account without the number before it and a separator.
func withoutID(account, separator string) string {
	id, rest, _ := strings.Cut(account, separator)
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	if id == "" || rest == "" || strings.TrimFunc(id, isDigit) != "" {
		return account
	}
	return rest
}

func isASCII(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// SumName returns a sum (FNV-1a) of a name. Names of ASCII characters that differ only in case,
// brackets and blanks have the same sum. isPlain reports whether no other names fold to the same: not
// if the name has other characters than ASCII, or one that begins a tag, a quotation or a provider.
func SumName(name string) (sum uint64, isPlain bool) {
	sum, isPlain = 14695981039346656037, true
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z' || '-' <= c && c <= '9':
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c >= utf8.RuneSelf || c == '+' || c == '"' || c == ':':
			isPlain = false
		case c <= ' ' || c == '<' || c == '>' || c == '(' || c == ')' || c == '[' || c == ']' || c == '{' || c == '}':
			continue // a bracket or a blank, or a character that no name has
		}
		sum = (sum ^ uint64(c)) * 1099511628211
	}
	return sum, isPlain
}

// foldRune is like foldASCII, and also drops other blanks and invisible characters.
func foldRune(r rune) rune {
	if unicode.In(r, unicode.White_Space, unicode.Cf, unicode.Variation_Selector) {
		return -1
	}
	return foldASCII(r)
}

// foldASCII folds a character of ASCII, or drops it if it is a blank or a bracket that no login has.
// It returns others unchanged.
func foldASCII(r rune) rune {
	switch {
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	case strings.ContainsRune("<>(){} \t\n\v\f\r", r):
		return -1
	}
	return r
}
