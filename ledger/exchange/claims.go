package exchange

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/ledgerd/ledgerd/ledger"
	"github.com/ledgerd/ledgerd/ledger/forge"
)

const (
	// Leeway is how far the clock of an issuer may differ from that of the server.
	Leeway = 60 * time.Second
	// MaxAge is how long after it was issued a token is accepted, however late it expires.
	MaxAge = 24 * time.Hour
)

// Claims are the claims of a token. Only those that rules compare are
// here; expressions see all.
type Claims struct {
	Issuer    string    `json:"iss"`
	Audience  audience  `json:"aud"`
	Expires   timestamp `json:"exp"`
	NotBefore timestamp `json:"nbf"`
	IssuedAt  timestamp `json:"iat"`
	// ID is the claim jti, which no other token of the issuer has.
	ID string `json:"jti"`

	// Of GitHub Actions and Forgejo Actions.
	RepositoryID identifier `json:"repository_id"`
	Repository   string     `json:"repository"`
	Event        string     `json:"event_name"`
	Workflow     string     `json:"job_workflow_ref"`
	RunID        identifier `json:"run_id"`
	RunNumber    identifier `json:"run_number"`

	// Of GitLab.
	ProjectID   identifier `json:"project_id"`
	ProjectPath string     `json:"project_path"`
	Source      string     `json:"pipeline_source"`
	JobID       identifier `json:"job_id"`

	Ref     string `json:"ref"` // GitLab: without refs/heads/ or refs/tags/
	RefType string `json:"ref_type"`

	payload []byte
}

func parseClaims(payload []byte) (Claims, error) {
	c := Claims{payload: payload}
	if err := ledger.DecodeOpen(payload, &c); err != nil {
		return c, invalid("the claims of the token cannot be read: %v", err)
	}
	return c, nil
}

func invalid(format string, args ...any) error {
	return ledger.Errorf(ledger.CodeInvalidToken, format, args...)
}

// An audience is the claim aud: a text, or a list.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(a))
	}
	if b[0] != '"' {
		return errors.New("not a text or a list")
	}
	*a = audience{""}
	return json.Unmarshal(b, &(*a)[0])
}

// An identifier is a claim that is a text or an integer.
type identifier string

// UnmarshalJSON implements json.Unmarshaler.
func (i *identifier) UnmarshalJSON(b []byte) error {
	switch {
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(i))
	case b[0] >= '0' && b[0] <= '9':
		*i = identifier(b)
		return nil
	}
	return errors.New("not a text or a number")
}

// A timestamp is a claim in seconds since 1970. Zero: the token has no such claim.
type timestamp ledger.Time

// UnmarshalJSON implements json.Unmarshaler.
func (t *timestamp) UnmarshalJSON(b []byte) error {
	const latest = 1 << 40 // seconds
	seconds, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return errors.New("not a number of seconds")
	}
	if seconds <= 0 || seconds > latest {
		return errors.New("out of range")
	}
	*t = timestamp(seconds * 1000)
	return nil
}

// Check returns an error if the token is not for the audience alone, or not valid at the time now.
func (c Claims) Check(audience string, now ledger.Time) error {
	if len(c.Audience) != 1 || c.Audience[0] != audience {
		return ledger.Errorf(ledger.CodeWrongAudience, "the token is for %s: request one for exactly %s",
			describe(c.Audience), audience)
	}
	if c.Expires == 0 || c.IssuedAt == 0 {
		return invalid("the token has no claim exp or iat: it must say when it was issued and when it expires")
	}

	expires, issued, begins := ledger.Time(c.Expires), ledger.Time(c.IssuedAt), ledger.Time(c.NotBefore)
	switch late, early := now.Add(-Leeway), now.Add(Leeway); {
	case expires <= late:
		return ledger.Errorf(ledger.CodeTokenExpired, "the token expired at %s (now: %s)", expires, now)
	case issued.Add(MaxAge) <= late:
		return ledger.Errorf(ledger.CodeTokenExpired, "the token was issued at %s, more than %s ago (now: %s)", issued,
			ledger.Duration(MaxAge), now)
	case begins > early:
		return ledger.Errorf(ledger.CodeTokenNotYetValid, "the token is valid from %s on (now: %s)", begins, now)
	case issued > early:
		return ledger.Errorf(ledger.CodeTokenNotYetValid, "the token was issued at %s, in the future (now: %s)", issued, now)
	}
	return nil
}

func describe(audience []string) string {
	switch len(audience) {
	case 0:
		return "no audience"
	case 1:
		return fmt.Sprintf("%.200q", audience[0])
	}
	return fmt.Sprintf("%d audiences", len(audience))
}

// End returns the time from which Check refuses the token, so that its use can be forgotten.
func (c Claims) End() ledger.Time {
	return min(ledger.Time(c.Expires), ledger.Time(c.IssuedAt).Add(MaxAge)).Add(Leeway)
}

// UseDigest returns the SHA-256 under which the use of the token is stored. It returns an error for
// a token without the claim jti, since such tokens cannot be distinguished.
func (c Claims) UseDigest() ([32]byte, error) {
	if c.ID == "" {
		return [32]byte{}, invalid("the token has no claim jti, so it cannot be ensured that it is used once")
	}
	return sha256.Sum256([]byte(c.Issuer + "\x00" + c.ID)), nil
}

// Digest returns the SHA-256 of all claims, for the ledger.
func (c Claims) Digest() string { return fmt.Sprintf("sha256:%x", sha256.Sum256(c.payload)) }

// githubActions is the issuer of GitHub Actions on github.com.
const githubActions = "https://token.actions.githubusercontent.com"

// RunURL returns the URL of the page of the CI run or job, or an empty string if it is not known.
func (c Claims) RunURL() string {
	server, isForgejo := strings.CutSuffix(c.Issuer, "/api/actions")
	server, isEnterprise := strings.CutSuffix(server, "/_services/token")
	if c.Issuer == githubActions {
		server, isEnterprise = "https://github.com", true
	}

	switch {
	case c.ProjectPath != "" && c.JobID != "":
		return forge.Web(c.Issuer + "/" + c.ProjectPath + "/-/jobs/" + string(c.JobID))
	case isEnterprise && c.Repository != "" && c.RunID != "":
		return forge.Web(server + "/" + c.Repository + "/actions/runs/" + string(c.RunID))
	case isForgejo && c.Repository != "" && c.RunNumber != "":
		return forge.Web(server + "/" + c.Repository + "/actions/runs/" + string(c.RunNumber))
	}
	return ""
}
