package ledger

import (
	"fmt"

	"github.com/ledgerd/ledgerd/ledger/internal/text"
)

// A State is how far a commit has come. States are ordered: each stands above
// those before it.
type State uint8

// The five states.
const (
	Draft      State = iota // known, nothing signed
	Validating              // at least one attestation
	Attested                // the requirements of ATTESTED are met
	Promotable              // and those of PROMOTABLE
	Deployed                // and those of DEPLOYED, by what was recorded while PROMOTABLE
)

// States lists all states from the lowest to the highest.
func States() []State { return []State{Draft, Validating, Attested, Promotable, Deployed} }

var stateNames = [...]string{"DRAFT", "VALIDATING", "ATTESTED", "PROMOTABLE", "DEPLOYED"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// ParseState reads a state's name.
func ParseState(name string) (State, error) {
	for i, n := range stateNames {
		if n == name {
			return State(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a state (use DRAFT, VALIDATING, ATTESTED, PROMOTABLE or DEPLOYED)", text.Clip(name))
}

// AppendText implements encoding.TextAppender.
func (s State) AppendText(b []byte) ([]byte, error) { return append(b, s.String()...), nil }

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a state's name.
func (s *State) UnmarshalText(b []byte) error {
	parsed, err := ParseState(string(b))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// A Cause is what made a commit change its state.
type Cause struct {
	Type CauseType `json:"type"`
	// ID names the attestation, policy version, commit or event; for an
	// expiry, the attestation that ran out.
	ID string `json:"id"`
}

// A CauseType is one kind of Cause.
type CauseType string

// The causes of a change of state.
const (
	CauseAttestation CauseType = "attestation" // an attestation was recorded
	CausePolicy      CauseType = "policy"      // the repo's contract changed
	CauseExpiry      CauseType = "expiry"      // evidence ran out by max_age
	CauseRadar       CauseType = "radar"       // an overlap opened or ended
	CauseCommit      CauseType = "commit"      // the commit's registration changed what applies to it
)
